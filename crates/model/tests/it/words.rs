//! Ids and the words of the settings, as they go over the wire and come back.

use cotenant_model::{
    ApprovalId, ChangeId, Durability, HandleId, Limits, PlanId, Profile, RetryToken, SessionId, Settings,
    StalePolicy, SuggestionId, ToolSet,
};
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_id_is_its_kinds_and_no_other(number in any::<u64>(), space in "[ \\t]{0,2}") {
        let texts = [
            ChangeId(number).to_string(),
            SessionId(number).to_string(),
            ApprovalId(number).to_string(),
            PlanId(number).to_string(),
            RetryToken(number).to_string(),
            SuggestionId(number).to_string(),
            HandleId(number).to_string(),
        ];
        for (index, text) in texts.iter().enumerate() {
            let text = format!("{space}{text}{space}");
            let read = [
                text.parse() == Ok(ChangeId(number)),
                text.parse() == Ok(SessionId(number)),
                text.parse() == Ok(ApprovalId(number)),
                text.parse() == Ok(PlanId(number)),
                text.parse() == Ok(RetryToken(number)),
                text.parse() == Ok(SuggestionId(number)),
                text.parse() == Ok(HandleId(number)),
            ];
            let wanted: Vec<bool> = (0..texts.len()).map(|kind| kind == index).collect();
            prop_assert_eq!(read.to_vec(), wanted, "{}", text);
        }
    }

    #[test]
    fn a_text_is_an_id_only_in_its_one_form(text in "[acrsehp]{0,2}[0-9+\\- _.]{0,6}") {
        let digits = text.trim().strip_prefix('c');
        let wanted = digits.filter(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()));
        prop_assert_eq!(text.parse::<ChangeId>().ok().map(|id| id.0), wanted.and_then(|digits| digits.parse().ok()));
    }
}

#[test]
fn what_is_no_id_says_what_one_looks_like() {
    let error = "x\n9".parse::<HandleId>().unwrap_err();
    assert_eq!((error.given.as_str(), error.prefix), ("x\n9", "h"));
    assert_eq!(error.to_string(), "\"x\\n9\" is not an id such as h12");
    assert!("c18446744073709551616".parse::<ChangeId>().is_err(), "one too large");
    assert_eq!("c18446744073709551615".parse(), Ok(ChangeId(u64::MAX)));
    assert_eq!("c007".parse(), Ok(ChangeId(7)));
}

#[test]
fn ids_of_a_kind_are_ordered_by_number() {
    let mut ids = [ChangeId(10), ChangeId(9), ChangeId(100)];
    ids.sort_unstable();
    assert_eq!(ids, [ChangeId(9), ChangeId(10), ChangeId(100)]);
}

#[test]
fn words_are_exact() {
    for odd in ["", "Careful", " careful", "read-only", "trust", "FULL", "corE"] {
        assert_eq!(
            (Profile::parse(odd), Durability::parse(odd), ToolSet::parse(odd)),
            (None, None, None),
            "{odd:?}"
        );
    }
    let words: Vec<&str> = ToolSet::ALL.iter().map(|set| set.name()).collect();
    assert_eq!(words, ["core", "team", "history", "organise", "plan", "exec"]);
    assert!(
        Profile::ReadOnly < Profile::Careful && Profile::Careful < Profile::Trusting,
        "a lesser profile allows less"
    );
}

/// The numbers of the contract's table of limits.
#[test]
fn the_defaults_are_those_of_the_contract() {
    let Limits {
        read_lines,
        read_bytes,
        answer_bytes,
        text_bytes,
        list,
        names,
        matches,
        context,
        regex_bytes,
        command_s,
        shown_ok_bytes,
        shown_failed_bytes,
    } = Limits::default();
    assert_eq!((read_lines, read_bytes, answer_bytes), (600, 24 * 1024, 32 * 1024));
    assert_eq!((list, names, matches, context), (500, 100, 50, 10));
    assert_eq!((text_bytes, regex_bytes), (10_000_000, 256 * 1024));
    assert_eq!((command_s, shown_ok_bytes, shown_failed_bytes), (60, 4 * 1024, 24 * 1024));
    let settings = Settings::default();
    assert_eq!(
        (settings.profile, settings.durability, settings.edits.stale),
        (Profile::Careful, Durability::Full, StalePolicy::Region)
    );
    assert_eq!(
        (settings.approval_wait_s, settings.retention_days, settings.retention_megabytes),
        (45, 90, 2048)
    );
    assert_eq!(settings.tools, [ToolSet::Core, ToolSet::Team, ToolSet::History, ToolSet::Organise]);
    assert!(
        settings.edits.tolerant.is_empty()
            && settings.approval_rules.is_empty()
            && settings.folders.is_empty()
    );
}
