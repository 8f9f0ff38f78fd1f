//! Rules and dashboard ask only for metrics that exist, and every alert leads to a runbook that exists. (promtool tests the rules
//! themselves, as a part of `make test`.)

use std::collections::BTreeSet;

use serde_json::Value;

/// Names, kinds and help of the metrics page; a test of its own keeps it true.
const PAGE: &str = include_str!("metrics_page.txt");
const RULES: &str = include_str!("../../observability/rules.yml");
const RULE_TESTS: &str = include_str!("../../observability/tests.yml");
const RUNBOOKS: &str = include_str!("../../observability/README.md");
const DASHBOARD: &str = include_str!("../../observability/dashboard.json");

/// What begins the name of a metric of ours.
const PREFIXES: &[&str] = &[
    "idempotency_",
    "duplicate_",
    "redis_",
    "request_timeout_",
    "yici_",
    "process_",
    "action:",
    "job:",
];

/// Every name that a query may use.
fn known() -> BTreeSet<String> {
    let mut known = BTreeSet::from(["process_cpu_seconds_total".to_owned()]);
    for line in PAGE.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let (name, kind) = line.split_once(' ').unwrap();
        if kind == "histogram" {
            known.extend(["_bucket", "_sum", "_count"].map(|end| format!("{name}{end}")));
        } else {
            known.insert(name.to_owned());
        }
    }
    let recorded = RULES
        .lines()
        .filter_map(|line| line.trim().strip_prefix("- record: "));
    known.extend(recorded.map(str::to_owned));
    known
}

/// The names of metrics in a text of queries.
fn names(text: &str) -> BTreeSet<String> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
        .filter(|word| PREFIXES.iter().any(|prefix| word.starts_with(prefix)))
        .map(str::to_owned)
        .collect()
}

fn values<'a>(member: &str) -> Vec<&'a str> {
    let lines = RULES.lines().map(str::trim);
    lines.filter_map(|line| line.strip_prefix(member)).collect()
}

#[test]
fn rules_ask_only_for_metrics_that_exist() {
    // What is not a query in that file is words and names of alerts.
    let queries: String = RULES
        .lines()
        .filter(|line| !line.trim().starts_with('#') && !line.contains("summary:"))
        .fold(String::new(), |all, line| all + line + "\n");
    let used = names(&queries);
    assert!(used.len() > 15);
    let unknown: Vec<_> = used.difference(&known()).cloned().collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

#[test]
fn every_alert_leads_to_its_runbook_and_is_tested_to_fire_and_not_to() {
    let alerts = values("- alert: ");
    let links = values("runbook_url: ");
    assert!(alerts.len() >= 11 && alerts.len() == links.len());
    let headings: BTreeSet<String> = RUNBOOKS
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .map(|title| title.to_lowercase().replace(' ', "-"))
        .collect();
    for (alert, link) in alerts.iter().zip(links) {
        let (file, heading) = link.split_once('#').unwrap();
        assert_eq!(file, "server/observability/README.md");
        assert!(headings.contains(heading), "{link}");
        assert!(RUNBOOKS.contains(&format!("*{alert}.*")), "{alert}");
        for kind in ["fires", "does not fire"] {
            assert!(
                RULE_TESTS.contains(&format!("- name: {alert} {kind}\n")),
                "{alert} {kind}"
            );
        }
    }
}

#[test]
fn the_dashboard_is_one_and_asks_only_for_metrics_that_exist() {
    let dashboard: Value = serde_json::from_str(DASHBOARD).unwrap();
    assert!(dashboard["schemaVersion"].as_i64().unwrap() >= 36);
    assert!(dashboard["title"].is_string() && dashboard["uid"].is_string());
    let variables: BTreeSet<&str> = dashboard["templating"]["list"]
        .as_array()
        .unwrap()
        .iter()
        .map(|variable| variable["name"].as_str().unwrap())
        .collect();
    let known = known();
    let (mut ids, mut queries) = (BTreeSet::new(), 0);
    for panel in dashboard["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(
            ids.insert(panel["id"].as_i64().unwrap()),
            "{title}: its id is used twice"
        );
        assert!(
            ["stat", "timeseries"].contains(&panel["type"].as_str().unwrap()),
            "{title}"
        );
        let place = &panel["gridPos"];
        let side = |name: &str| place[name].as_u64().unwrap();
        assert!(
            side("w") > 0 && side("h") > 0 && side("x") + side("w") <= 24,
            "{title}"
        );
        let mut letters = BTreeSet::new();
        for target in panel["targets"].as_array().unwrap() {
            queries += 1;
            assert!(letters.insert(target["refId"].as_str().unwrap()), "{title}");
            let query = target["expr"].as_str().unwrap();
            let used = names(query);
            assert!(
                !used.is_empty() && used.is_subset(&known),
                "{title}: {query}"
            );
            for word in query.split('$').skip(1) {
                let end = word.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                let variable = &word[..end.unwrap_or(word.len())];
                assert!(
                    variables.contains(variable) || variable == "__rate_interval",
                    "{query}"
                );
            }
        }
        assert!(!letters.is_empty(), "{title} shows nothing");
    }
    assert!(queries > 20);
}
