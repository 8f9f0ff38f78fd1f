//! The values of single settings: read, checked, and refused by name.

use std::{fmt, net::SocketAddr, num::NonZeroU32, ops::RangeInclusive, str::FromStr};

use domain::{IdempotencyKey, RecordState, Role, compensation::CompensationAction};
use engine::FrontLockConfig;
use secrecy::SecretString;
use sqlx::postgres::PgConnectOptions;
use strum::VariantArray;

use super::SettingsError;

/// Text as it came, so that an empty one can count as unset and clap never repeats a secret in its messages.
#[derive(Clone, Default)]
pub(super) struct Raw(String);

impl FromStr for Raw {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self(text.trim().to_owned()))
    }
}

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Raw(…)")
    }
}

/// The text of a setting, `None` when it is unset or empty.
pub(super) fn text(raw: &Option<Raw>) -> Option<&str> {
    raw.as_ref()
        .map(|raw| raw.0.as_str())
        .filter(|text| !text.is_empty())
}

/// A refusal that does not repeat the value.
pub(super) fn refused(name: &'static str, expected: &str) -> SettingsError {
    SettingsError {
        name,
        expected: expected.to_owned(),
        got: None,
    }
}

/// A whole number in a range. Plain digits only: no sign, no fraction, no separators.
pub(super) fn whole(
    name: &'static str,
    raw: &Option<Raw>,
    default: u64,
    range: RangeInclusive<u64>,
    unit: &str,
) -> Result<u64, SettingsError> {
    let Some(text) = text(raw) else {
        return Ok(default);
    };
    Some(text)
        .filter(|text| text.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|text| text.parse().ok())
        .filter(|number| range.contains(number))
        .ok_or_else(|| SettingsError {
            name,
            expected: format!(
                "a whole number of {unit} from {} to {}",
                range.start(),
                range.end()
            ),
            got: Some(text.to_owned()),
        })
}

pub(super) fn rate(
    name: &'static str,
    raw: &Option<Raw>,
    default: u64,
) -> Result<Option<NonZeroU32>, SettingsError> {
    // The burst is four times the rate and must still be a 32-bit number.
    let limit = whole(name, raw, default, 0..=1_000_000, "requests per second")?;
    Ok(NonZeroU32::new(narrow(limit)))
}

/// For numbers whose range has been checked.
pub(super) fn narrow(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(super) fn listen(raw: &Option<Raw>) -> Result<SocketAddr, SettingsError> {
    let text = text(raw).unwrap_or("127.0.0.1:3000");
    text.parse().map_err(|_| SettingsError {
        name: "YICI_LISTEN",
        expected: "an IP address and a port, e.g. 127.0.0.1:3000 or [::1]:3000".to_owned(),
        got: Some(text.to_owned()),
    })
}

pub(super) fn database_url(
    name: &'static str,
    raw: &Option<Raw>,
) -> Result<Option<SecretString>, SettingsError> {
    secret(raw, |text| {
        has_scheme(text, &["postgres", "postgresql"]) && PgConnectOptions::from_str(text).is_ok()
    })
    .ok_or_else(|| {
        refused(
            name,
            "a URL like postgres://user:password@host:5432/database",
        )
    })
}

pub(super) fn redis_url(raw: &Option<Raw>) -> Result<Option<SecretString>, SettingsError> {
    secret(raw, |text| {
        has_scheme(text, &["redis", "rediss"]) && FrontLockConfig::is_url(text)
    })
    .ok_or_else(|| refused("REDIS_URL", "a URL like redis://host:6379/0 or rediss://…"))
}

/// A base URL that paths are appended to: no query, and slashes at its end are dropped.
pub(super) fn http_url(
    name: &'static str,
    raw: &Option<Raw>,
) -> Result<Option<SecretString>, SettingsError> {
    let trimmed = text(raw).map(|text| Raw(text.trim_end_matches('/').to_owned()));
    secret(&trimmed, |text| {
        has_scheme(text, &["http", "https"])
            && !text.contains('#')
            && http::Uri::from_str(text)
                .is_ok_and(|uri| uri.host().is_some_and(|h| !h.is_empty()) && uri.query().is_none())
    })
    .ok_or_else(|| {
        refused(
            name,
            "a URL like http://host:8080 or https://host/path, without a query",
        )
    })
}

/// `None`: refused; `Some(None)`: unset.
#[expect(
    clippy::option_option,
    reason = "refused and unset are told apart by the callers at once"
)]
pub(super) fn secret(
    raw: &Option<Raw>,
    is_good: impl Fn(&str) -> bool,
) -> Option<Option<SecretString>> {
    match text(raw) {
        None => Some(None),
        Some(text) => is_good(text).then(|| Some(SecretString::from(text))),
    }
}

pub(super) fn has_scheme(text: &str, schemes: &[&str]) -> bool {
    text.split_once("://")
        .is_some_and(|(scheme, rest)| schemes.contains(&scheme) && !rest.is_empty())
}

pub(super) fn account_name(text: &str) -> Result<String, String> {
    let bad = text.trim() != text || text.is_empty() || text.chars().any(char::is_control);
    if bad {
        return Err(
            "expected a name without spaces around it and without control characters".to_owned(),
        );
    }
    Ok(text.to_owned())
}

pub(super) fn role(text: &str) -> Result<Role, String> {
    Role::from_str(text).map_err(|_| "expected student, teacher, parent, ops or admin".to_owned())
}

/// A record's state, in any case.
pub(super) fn state(text: &str) -> Result<RecordState, String> {
    let names = || {
        RecordState::VARIANTS
            .iter()
            .map(AsRef::as_ref)
            .collect::<Vec<&str>>()
    };
    RecordState::from_str(&text.to_ascii_uppercase())
        .map_err(|_| format!("expected one of {}", names().join(", ")))
}

/// What is to be done about a record.
pub(super) fn compensation_action(text: &str) -> Result<CompensationAction, String> {
    CompensationAction::from_str(text)
        .map_err(|_| "expected verify, complete, release, re_execute or fail".to_owned())
}

/// A key by the contract's rules.
pub(super) fn idempotency_key(text: &str) -> Result<IdempotencyKey, String> {
    IdempotencyKey::from_text(text).map_err(|error| error.to_string())
}
