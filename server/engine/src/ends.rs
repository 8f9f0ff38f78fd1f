//! How executions ended, as ops look for them: what failed for now, what was compensated.

use domain::view::{AppliedView, FailureView, Window};

use crate::{
    Engine, StoreError,
    reading::{cursor, page},
    store::ends,
};

impl Engine {
    /// A page of the executions that failed for now within a window, newest first, and the cursor of the next one; `None` when the
    /// cursor is none of ours.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_failures(
        &self,
        window: Window,
        after: Option<&str>,
    ) -> Result<Option<(Vec<FailureView>, Option<String>)>, StoreError> {
        let place = |text: &str| {
            let (micros, id) = text.split_once('-')?;
            Some((micros.parse().ok()?, id.parse().ok()?))
        };
        let after = after.map(place);
        let Some((_, limit)) = cursor(None, None).filter(|_| after != Some(None)) else {
            return Ok(None);
        };
        let pool = &self.0.pools.reading;
        let found = ends::list_failures(pool, window, after.flatten(), limit + 1).await?;
        let (found, next) = page(found, limit, |(_, (micros, id))| format!("{micros}-{id}"));
        Ok(Some((
            found.into_iter().map(|(view, _)| view).collect(),
            next,
        )))
    }

    /// A page of what was done to records within a window, newest first, and the cursor of the next one; `None` when the cursor is none
    /// of ours.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn list_applied(
        &self,
        window: Window,
        after: Option<&str>,
    ) -> Result<Option<(Vec<AppliedView>, Option<String>)>, StoreError> {
        let Some((after, limit)) = cursor(after, None) else {
            return Ok(None);
        };
        let found = ends::list_applied(&self.0.pools.reading, window, after, limit + 1).await?;
        Ok(Some(page(found, limit, |view| view.id.clone())))
    }
}
