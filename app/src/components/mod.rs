//! Small views without any state of their own, shared by the pages.

mod chart;
mod frame;
mod key;
mod state_badge;
mod time;
mod words;

pub(crate) use chart::{Layer, Sparkline, StackedArea, highest, scale_end};
pub(crate) use frame::{Frame, PageHead};
pub(crate) use key::CutKey;
pub(crate) use state_badge::{AgeBar, Shape, StateBadge, StuckBadge, TaskBadge, icon};
pub(crate) use time::{Ago, At};
pub(crate) use words::{Elsewhere, Empty, FaultView, Skeleton, fault_view};
