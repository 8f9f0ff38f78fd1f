//! Accounts, classes and families.

use domain::Role;
use sqlx::{FromRow, PgConnection, PgPool};

use crate::{AccountPassword, Actor, StoreError};

/// The columns that make an [`Actor`].
#[derive(FromRow)]
pub(crate) struct ActorRow {
    id: i64,
    name: String,
    role: String,
}

impl TryFrom<ActorRow> for Actor {
    type Error = StoreError;

    fn try_from(row: ActorRow) -> Result<Self, StoreError> {
        let role = row
            .role
            .parse()
            .map_err(|_| StoreError::Corrupt(format!("role of account {}", row.id)))?;
        Ok(Self {
            id: row.id,
            name: row.name,
            role,
        })
    }
}

#[derive(FromRow)]
struct PasswordRow {
    #[sqlx(flatten)]
    actor: ActorRow,
    password_hash: String,
}

pub(crate) async fn find_password(
    pool: &PgPool,
    name: &str,
) -> Result<Option<AccountPassword>, StoreError> {
    let row: Option<PasswordRow> =
        sqlx::query_as("SELECT id, name, role, password_hash FROM account WHERE name = $1")
            .bind(name)
            .fetch_optional(pool)
            .await?;
    row.map(|row| {
        Ok(AccountPassword {
            actor: row.actor.try_into()?,
            password_hash: row.password_hash,
        })
    })
    .transpose()
}

/// Inserts an account; `None` when the name is taken.
pub(crate) async fn insert_account(
    connection: &mut PgConnection,
    name: &str,
    role: Role,
    password_hash: &str,
) -> Result<Option<i64>, sqlx::Error> {
    sqlx::query_scalar(
        "INSERT INTO account (name, role, password_hash) VALUES ($1, $2, $3)
         ON CONFLICT ON CONSTRAINT uk_account_name DO NOTHING RETURNING id",
    )
    .bind(name)
    .bind(role.as_ref())
    .bind(password_hash)
    .fetch_optional(connection)
    .await
}

pub(crate) async fn insert_class(
    connection: &mut PgConnection,
    name: &str,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO class (name) VALUES ($1) ON CONFLICT ON CONSTRAINT uk_class_name DO NOTHING",
    )
    .bind(name)
    .execute(connection)
    .await
    .map(drop)
}

pub(crate) async fn insert_membership(
    connection: &mut PgConnection,
    class: &str,
    account_id: i64,
) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO class_member (class_id, account_id) SELECT id, $2 FROM class WHERE name = $1",
    )
    .bind(class)
    .bind(account_id)
    .execute(connection)
    .await
    .map(drop)
}

/// Makes a student somebody's child; answers how many students of that name there are: 0 or 1.
pub(crate) async fn insert_parenthood(
    connection: &mut PgConnection,
    parent_id: i64,
    child: &str,
) -> Result<u64, sqlx::Error> {
    let done = sqlx::query(
        "INSERT INTO parent_child (parent_id, child_id) SELECT $1, id FROM account WHERE name = $2 AND role = 'student'",
    )
    .bind(parent_id)
    .bind(child)
    .execute(connection)
    .await?;
    Ok(done.rows_affected())
}

pub(crate) async fn list_accounts(
    pool: &PgPool,
    names: &[String],
    role: Option<Role>,
) -> Result<Vec<Actor>, StoreError> {
    let rows: Vec<ActorRow> = sqlx::query_as(
        "SELECT id, name, role FROM account WHERE name = ANY ($1) OR role = $2 ORDER BY id",
    )
    .bind(names)
    .bind(role.as_ref().map(AsRef::as_ref))
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}

/// The students of these names. Its own statement beside [`list_accounts`], whose `OR` a generic plan answers with a scan.
pub(crate) async fn list_students(
    pool: &PgPool,
    names: &[String],
) -> Result<Vec<Actor>, StoreError> {
    let rows: Vec<ActorRow> = sqlx::query_as(
        "SELECT id, name, role FROM account WHERE name = ANY ($1) AND role = 'student' ORDER BY id",
    )
    .bind(names)
    .fetch_all(pool)
    .await?;
    rows.into_iter().map(TryInto::try_into).collect()
}
