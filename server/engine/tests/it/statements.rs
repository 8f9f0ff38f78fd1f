//! What a submission and a replay may cost: round trips are counted on the wire.

use engine::{EngineConfig, Pools};
use sqlx::PgPool;

use crate::{
    support::{World, arrival, start_on, submit},
    wire::Wire,
};

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_submission_is_two_commits_and_at_most_four_statements_and_a_replay_is_one(pool: PgPool) {
    let wire = Wire::new(&pool).await;
    let pools = Pools {
        work: wire.pool.clone(),
        reading: pool.clone(),
    };
    let engine = start_on(pools, EngineConfig::default()).await;
    let world = World::with_engine(engine, pool).await;
    let (task, practice) = (world.assignment().await, world.practice().await);
    // Everything is prepared by now, on whichever connection.
    submit(&world, arrival("warm", &practice, 1, "x"))
        .await
        .unwrap();
    world.engine.flush().await;
    wire.take_seen();

    submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    let seen = wire.take_seen();
    let statements = seen.iter().filter(|s| *s == "execute").count();
    assert!(statements <= 4, "{seen:?}");
    // The claim commits by itself; the finish is one transaction.
    let simple: Vec<_> = seen
        .iter()
        .filter(|s| *s != "execute")
        .map(|s| &s[..5])
        .collect();
    assert_eq!(simple, ["BEGIN", "COMMI"], "{seen:?}");

    submit(&world, arrival("tablet", &task, 1, "x"))
        .await
        .unwrap();
    let conflict = wire.take_seen();
    assert!(
        conflict.iter().filter(|s| *s == "execute").count() <= 4,
        "{conflict:?}"
    );

    submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    let replay = wire.take_seen();
    assert_eq!(replay, ["execute"]);
}
