//! Signing in and out, and the limits.

use std::num::NonZeroU32;

use axum::body::Body;
use http::Method;
use server::http::limits::Limits;
use sqlx::PgPool;

use crate::support::{Answer, World, request};

async fn sign_in(world: &World, name: &str, password: &str) -> Answer {
    let body = format!(r#"{{"username":"{name}","password":"{password}"}}"#);
    let request = request(Method::POST, "/api/v1/session", "")
        .header("content-type", "application/json")
        .body(Body::from(body))
        .unwrap();
    world.send(request).await
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_session_lives_from_sign_in_to_sign_out(pool: PgPool) {
    let world = World::new(pool).await;
    let answer = sign_in(&world, "student1", "demo").await;
    assert_eq!(answer.status, 200);
    let account = &answer.json()["account"];
    assert_eq!(
        (&account["name"], &account["role"], &account["id"]),
        (&"student1".into(), &"student".into(), &"1".into())
    );
    let cookie = answer.header("set-cookie").unwrap().to_owned();
    for part in ["HttpOnly", "SameSite=Lax", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    let token = answer.json()["token"].as_str().unwrap().to_owned();
    assert_eq!(world.get(&token, "/api/v1/tasks").await.status, 200);
    let by_cookie = request(Method::GET, "/api/v1/tasks", "")
        .header("cookie", cookie.split(';').next().unwrap())
        .body(Body::empty())
        .unwrap();
    assert_eq!(world.send(by_cookie).await.status, 200);
    assert_eq!(
        world
            .count("SELECT count(*) FROM access_token WHERE octet_length(token_hash) = 32")
            .await,
        1
    );
    let out = world
        .send(
            request(Method::DELETE, "/api/v1/session", &token)
                .body(Body::empty())
                .unwrap(),
        )
        .await;
    assert_eq!(out.status, 204);
    assert_eq!(world.get(&token, "/api/v1/tasks").await.status, 401);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn nothing_tells_a_wrong_name_from_a_wrong_password(pool: PgPool) {
    let world = World::new(pool).await;
    let (name, password) = (
        sign_in(&world, "nobody", "demo").await,
        sign_in(&world, "student1", "wrong").await,
    );
    for answer in [
        &name,
        &password,
        &sign_in(&world, "a\\u0000b", "demo").await,
    ] {
        assert_eq!(
            (answer.status.as_u16(), answer.code().as_str()),
            (401, "sign-in-failed")
        );
    }
    assert_eq!(name.json()["detail"], password.json()["detail"]);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn failed_sign_ins_are_throttled_and_a_right_one_never(pool: PgPool) {
    let world = World::new(pool).await;
    let mut last = sign_in(&world, "student1", "wrong").await;
    for _ in 0..10 {
        last = sign_in(&world, "student1", "wrong").await;
    }
    assert_eq!(
        (last.status.as_u16(), last.code().as_str()),
        (429, "rate-limited")
    );
    assert!(last.header("retry-after").unwrap().parse::<u32>().unwrap() >= 1);
    assert_eq!(sign_in(&world, "student1", "demo").await.status, 200);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn an_account_is_limited_on_its_own(pool: PgPool) {
    // One a second, four at once.
    let world = World::with_limits(pool, Limits::new(NonZeroU32::new(1), None)).await;
    let (busy, quiet) = (world.token("student1").await, world.token("student2").await);
    let mut statuses = Vec::new();
    for _ in 0..20 {
        statuses.push(world.get(&busy, "/api/v1/points").await.status.as_u16());
    }
    assert_eq!(statuses[..4], [200, 200, 200, 200]);
    assert!(statuses.contains(&429), "{statuses:?}");
    assert_eq!(world.get(&quiet, "/api/v1/points").await.status, 200);
    assert_eq!(world.get("", "/healthz").await.status, 200);
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn nobody_is_limited_by_address_but_healthz_and_readyz_never(pool: PgPool) {
    let world = World::with_limits(pool, Limits::new(None, NonZeroU32::new(1))).await;
    let mut statuses = Vec::new();
    for _ in 0..10 {
        statuses.push(world.get("", "/api/v1/points").await.status.as_u16());
        assert_eq!(world.get("", "/healthz").await.status, 200);
        assert_eq!(world.get("", "/readyz").await.status, 200);
    }
    assert!(
        statuses.starts_with(&[401]) && statuses.contains(&429),
        "{statuses:?}"
    );
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_stored_language_leads_back_to_our_own_pages_only(pool: PgPool) {
    let world = World::new(pool).await;
    for (back, target) in [
        ("/tasks/1?x=1", "/tasks/1?x=1"),
        ("//evil.example", "/"),
        ("https://evil.example", "/"),
        ("/\\evil", "/"),
    ] {
        let body = format!("lang=zh&back={}", back.replace('&', "%26"));
        let request = request(Method::POST, "/language", "")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Body::from(body))
            .unwrap();
        let answer = world.send(request).await;
        assert_eq!(
            (answer.status.as_u16(), answer.header("location")),
            (303, Some(target)),
            "{back}"
        );
        assert!(answer.header("set-cookie").unwrap().starts_with("lang=zh"));
    }
}
