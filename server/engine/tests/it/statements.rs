//! What a submission and a replay may cost: round trips are counted on the wire.

use engine::EngineConfig;
use sqlx::PgPool;

use crate::{
    support::{arrival, submit},
    wire::wired,
};

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn a_submission_is_two_commits_and_at_most_four_statements_and_a_replay_is_one(pool: PgPool) {
    let (world, wire) = wired(pool, EngineConfig::default()).await;
    let (task, practice) = (world.assignment().await, world.practice().await);
    // Everything is prepared by now, on whichever connection.
    submit(&world, arrival("warm", &practice, 1, "x"))
        .await
        .unwrap();
    world.engine.flush().await;
    wire.take_seen();

    submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    let seen = wire.take_seen();
    let first_words: Vec<_> = seen.iter().map(|s| &s[..5]).collect();
    // The claim commits by itself; the finish is one transaction.
    assert_eq!(
        first_words,
        ["execu", "BEGIN", "execu", "execu", "execu", "COMMI"]
    );

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
