//! What holds for every change of a record, whoever makes it: Postgres itself watches.

use sqlx::PgPool;

use crate::support::{World, arrival, submit};

/// From now on every change that breaks a rule is written down, and let through.
pub(crate) async fn watch_rules(world: &World) {
    world
        .execute(
            "CREATE TABLE broken_rule (rule text NOT NULL, before jsonb NOT NULL, after jsonb NOT NULL);
             CREATE FUNCTION watch_rules() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN
                 INSERT INTO broken_rule
                 SELECT rule, to_jsonb(OLD), to_jsonb(NEW)
                 FROM (VALUES
                     ('version changes only with state or epoch',
                      (NEW.version = OLD.version) = ((NEW.state, NEW.epoch) = (OLD.state, OLD.epoch))),
                     ('version and epoch grow', NEW.version >= OLD.version AND NEW.epoch >= OLD.epoch),
                     ('a finished record stays as it is',
                      OLD.state NOT IN ('SUCCEEDED', 'FAILED_FINAL')
                      OR (NEW.state, NEW.attempt, NEW.response_status, NEW.response_body, NEW.updated_at)
                         = (OLD.state, OLD.attempt, OLD.response_status, OLD.response_body, OLD.updated_at)
                         AND (NEW.response_location, NEW.error_code)
                             IS NOT DISTINCT FROM (OLD.response_location, OLD.error_code)),
                     ('an intent stays as it is',
                      (NEW.subject_id, NEW.action_type, NEW.idem_key, NEW.fingerprint, NEW.request, NEW.created_at)
                      = (OLD.subject_id, OLD.action_type, OLD.idem_key, OLD.fingerprint, OLD.request, OLD.created_at)),
                     ('a claim changes hands only under a new epoch',
                      NEW.claim_token = OLD.claim_token OR NEW.epoch > OLD.epoch),
                     ('a record is changed once in a transaction',
                      OLD.xmin::text <> pg_current_xact_id()::xid::text)
                 ) AS rules (rule, holds)
                 WHERE holds IS NOT true;
                 RETURN NULL;
             END $$;
             CREATE TRIGGER tg_watch_rules AFTER UPDATE ON idempotency_record FOR EACH ROW EXECUTE FUNCTION watch_rules()",
        )
        .await;
}

/// Nobody broke one.
pub(crate) async fn assert_rules(world: &World) {
    let broken: Vec<String> = sqlx::query_scalar("SELECT b::text FROM broken_rule b LIMIT 5")
        .fetch_all(&world.pool)
        .await
        .unwrap();
    assert_eq!(broken, Vec::<String>::new());
}

#[sqlx::test(migrator = "engine::MIGRATOR")]
async fn what_the_scanner_notes_makes_nobodys_page_stale(pool: PgPool) {
    let world = World::new(pool).await;
    watch_rules(&world).await;
    let task = world.assignment().await;
    world.leave_dead_claim("k", &task, "x").await;
    world.leave_dead_claim("gone", &task, "x").await;
    world
        .execute("UPDATE idempotency_record SET action_type = 'gone' WHERE idem_key = 'gone'; DELETE FROM broken_rule")
        .await;
    world.engine.scan_once().await.unwrap();
    let noted = "SELECT version FROM idempotency_record
                 WHERE idem_key = 'gone' AND scan_attempts = 1 AND scan_note IS NOT NULL AND stuck_claim IS NOT NULL";
    assert_eq!(world.count(noted).await, 1);
    submit(&world, arrival("k", &task, 1, "x")).await.unwrap();
    assert_rules(&world).await;
}
