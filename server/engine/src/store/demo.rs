//! The demo's data: loaded in sets, so that 100,000 students take seconds, and as often as wanted.

use sqlx::PgConnection;

/// The class that everybody of the demo is in.
const CLASS: &str = "Class 7A";

/// Lets one loader in at a time, until its transaction ends.
pub(crate) async fn lock(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query("SELECT pg_advisory_xact_lock(hashtext('yici demo'))")
        .execute(connection)
        .await
        .map(drop)
}

pub(crate) async fn has_real_accounts(connection: &mut PgConnection) -> Result<bool, sqlx::Error> {
    sqlx::query_scalar("SELECT EXISTS (SELECT FROM account WHERE NOT is_demo)")
        .fetch_one(connection)
        .await
}

pub(crate) async fn insert_accounts(
    connection: &mut PgConnection,
    students: u32,
    password_hash: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO account (name, role, password_hash, is_demo)
         SELECT 'student' || n, 'student', $2, true FROM generate_series(1, $1) n
         UNION ALL
         SELECT name, role, $2, true
         FROM (VALUES ('teacher1', 'teacher'), ('parent1', 'parent'), ('ops1', 'ops'), ('admin1', 'admin'),
                      ('admin2', 'admin')) AS staff (name, role)
         ON CONFLICT ON CONSTRAINT uk_account_name DO NOTHING",
    )
    .bind(i64::from(students))
    .bind(password_hash)
    .execute(connection)
    .await
    .map(drop)
}

pub(crate) async fn insert_class(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(
        "WITH made AS (
             INSERT INTO class (name) VALUES ($1) ON CONFLICT ON CONSTRAINT uk_class_name DO NOTHING RETURNING id
         ), the_class AS (
             SELECT id FROM made UNION ALL SELECT id FROM class WHERE name = $1
         )
         INSERT INTO class_member (class_id, account_id)
         SELECT c.id, a.id FROM the_class c, account a WHERE a.is_demo AND a.role IN ('student', 'teacher')
         ON CONFLICT ON CONSTRAINT pk_class_member DO NOTHING",
    )
    .bind(CLASS)
    .execute(connection)
    .await
    .map(drop)
}

pub(crate) async fn insert_family(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO parent_child (parent_id, child_id)
         SELECT p.id, c.id FROM account p, account c WHERE p.name = 'parent1' AND c.name = 'student1'
         ON CONFLICT ON CONSTRAINT pk_parent_child DO NOTHING",
    )
    .execute(connection)
    .await
    .map(drop)
}

pub(crate) async fn insert_tasks(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO task (class_id, title, instructions, kind, due_at, is_demo)
         SELECT c.id, d.title, d.instructions, d.kind, date_trunc('day', now()) + make_interval(days => d.days, hours => 10),
                true
         FROM class c, (VALUES
             ('背诵《观沧海》 · Recite a poem', '背诵全诗，写下你最喜欢的一句，并说明理由。'
              || E'\\n\\n' || 'Learn the poem by heart. Write down the line you like best, and why.', 'assignment', 3),
             ('一元一次方程 · Linear equations', '完成课本第 86 页第 1–6 题，写出主要步骤。'
              || E'\\n\\n' || 'Solve exercises 1–6 on page 86 and show the main steps.', 'assignment', 7),
             ('我的一天 · My day', '用英语写一段 80 词左右的短文，介绍你的一天。'
              || E'\\n\\n' || 'Write about 80 words in English about an ordinary day of yours.', 'assignment', 14),
             ('单词练习 · Vocabulary practice', '写出本单元的十个单词和例句，可以练习多次。'
              || E'\\n\\n' || 'Write ten words of this unit with an example each. Practise as often as you like.', 'practice', NULL)
         ) AS d (title, instructions, kind, days)
         WHERE c.name = $1 AND NOT EXISTS (SELECT FROM task t WHERE t.class_id = c.id AND t.is_demo AND t.title = d.title)",
    )
    .bind(CLASS)
    .execute(connection)
    .await
    .map(drop)
}

pub(crate) async fn insert_rewards(connection: &mut PgConnection) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO reward (name, price, is_demo)
         SELECT d.name, d.price, true
         FROM (VALUES ('贴纸 · Sticker', 50), ('书签 · Bookmark', 80), ('图书券 · Book voucher', 200)) AS d (name, price)
         WHERE NOT EXISTS (SELECT FROM reward w WHERE w.is_demo AND w.name = d.name)
         ORDER BY d.price",
    )
    .execute(connection)
    .await
    .map(drop)
}
