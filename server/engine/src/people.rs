//! Accounts, their tokens, and the demo's data. Passwords arrive here hashed, tokens as their SHA-256.

use std::time::Duration;

use domain::{Role, view::Account};

use crate::{
    Actor, Engine, StoreError,
    store::{account, demo, token},
};

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::AsRefStr)]
#[strum(serialize_all = "snake_case")]
pub enum TokenKind {
    /// A browser's or a person's session; it ends.
    Session,
    /// A machine client's; it stays until it is revoked.
    Machine,
}

/// An account to sign in to.
#[derive(Debug, Clone)]
pub struct AccountPassword {
    /// Who it is.
    pub actor: Actor,
    /// The password's hash in PHC form.
    pub password_hash: String,
}

/// An account to add.
#[derive(Debug, Clone)]
pub struct NewAccount {
    /// The name to sign in with.
    pub name: String,
    /// The role.
    pub role: Role,
    /// The password's hash in PHC form.
    pub password_hash: String,
    /// The class to learn or teach in; made when it does not exist.
    pub class: Option<String>,
    /// The names of a parent's children.
    pub children: Vec<String>,
}

/// An account could not be added.
#[derive(Debug, thiserror::Error)]
pub enum AddAccountError {
    /// The name is taken.
    #[error("there is an account named {0:?} already")]
    NameTaken(String),
    /// A child is no student.
    #[error("there is no student named {0:?}")]
    NoSuchChild(String),
    /// See [`StoreError`].
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The demo's data could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum DemoError {
    /// There are accounts that are not the demo's; everybody knows the demo's password.
    #[error("this database holds accounts that are not the demo's")]
    RealAccounts,
    /// See [`StoreError`].
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<sqlx::Error> for AddAccountError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl From<sqlx::Error> for DemoError {
    fn from(error: sqlx::Error) -> Self {
        Self::Store(error.into())
    }
}

impl Engine {
    /// The account of this name, with what its password is checked against.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find_password(&self, name: &str) -> Result<Option<AccountPassword>, StoreError> {
        account::find_password(&self.0.pools.work, name).await
    }

    /// Keeps a token for an account; `lifetime` counts from now, `None` is for ever.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn add_token(
        &self,
        account_id: i64,
        token_hash: &[u8; 32],
        kind: TokenKind,
        lifetime: Option<Duration>,
    ) -> Result<(), StoreError> {
        let tokens = [(account_id, token_hash.to_vec())];
        Ok(token::insert_tokens(&self.0.pools.work, &tokens, kind, lifetime).await?)
    }

    /// Keeps a machine token for each of these accounts, all or none.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn add_machine_tokens(&self, tokens: &[(i64, Vec<u8>)]) -> Result<(), StoreError> {
        Ok(token::insert_tokens(&self.0.pools.work, tokens, TokenKind::Machine, None).await?)
    }

    /// Who holds this token, if it is still valid. One statement; every request asks it, so a sign-out holds at once everywhere.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn find_actor_by_token(
        &self,
        token_hash: &[u8; 32],
    ) -> Result<Option<Actor>, StoreError> {
        token::find_actor(&self.0.pools.work, token_hash).await
    }

    /// Ends a session or revokes a token.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn remove_token(&self, token_hash: &[u8; 32]) -> Result<(), StoreError> {
        Ok(token::delete_token(&self.0.pools.work, token_hash).await?)
    }

    /// Adds an account with its class and children, all or nothing.
    ///
    /// # Errors
    /// When the name is taken, a child is unknown, or the store fails.
    pub async fn add_account(&self, new: &NewAccount) -> Result<Account, AddAccountError> {
        let mut transaction = self.0.pools.work.begin().await?;
        let id = account::insert_account(&mut transaction, &new.name, new.role, &new.password_hash)
            .await?;
        let id = id.ok_or_else(|| AddAccountError::NameTaken(new.name.clone()))?;
        if let Some(class) = &new.class {
            account::insert_class(&mut transaction, class).await?;
            account::insert_membership(&mut transaction, class, id).await?;
        }
        for child in &new.children {
            if account::insert_parenthood(&mut transaction, id, child).await? == 0 {
                return Err(AddAccountError::NoSuchChild(child.clone()));
            }
        }
        transaction.commit().await?;
        Ok(Account {
            id: id.to_string(),
            name: new.name.clone(),
            role: new.role,
        })
    }

    /// The accounts of these names, or of a role, in the order of their names.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_accounts(
        &self,
        names: &[String],
        role: Option<Role>,
    ) -> Result<Vec<Actor>, StoreError> {
        account::list_accounts(&self.0.pools.reading, names, role).await
    }

    /// The students of these names; a name that is nobody's, or somebody else's, is left out.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_students(&self, names: &[String]) -> Result<Vec<Actor>, StoreError> {
        account::list_students(&self.0.pools.work, names).await
    }

    /// Loads the demo's data; what is there already stays as it is. All its accounts share one password.
    ///
    /// # Errors
    /// When the database holds other accounts, or the store fails.
    pub async fn load_demo(&self, students: u32, password_hash: &str) -> Result<(), DemoError> {
        let mut transaction = self.0.pools.work.begin().await?;
        // RACE: two servers that start together load one after the other, and the second finds everything.
        demo::lock(&mut transaction).await?;
        if demo::has_real_accounts(&mut transaction).await? {
            return Err(DemoError::RealAccounts);
        }
        demo::insert_accounts(&mut transaction, students, password_hash).await?;
        demo::insert_class(&mut transaction).await?;
        demo::insert_family(&mut transaction).await?;
        demo::insert_tasks(&mut transaction).await?;
        demo::insert_rewards(&mut transaction).await?;
        transaction.commit().await?;
        Ok(())
    }
}
