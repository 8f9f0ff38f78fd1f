//! An address that leads nowhere.

use leptos::prelude::*;

use crate::{
    components::FaultView,
    fault::{Fault, FaultKind},
};

/// Every unknown path; the status says the same.
#[component]
pub(crate) fn NotFoundPage() -> impl IntoView {
    view! {
        <div class="page page-narrow">
            <FaultView fault=Fault { kind: FaultKind::NotFound, trace_id: None }/>
        </div>
    }
}
