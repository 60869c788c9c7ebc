//! `cotenant.toml`: what it says, and how slips are answered.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cotenant_daemon::config::{load, parse};
use cotenant_model::{
    Access, AgentRule, Answer, ApprovalRule, Code, CommandRule, Commands, Durability, ExecLimits, FolderSpec,
    GeneratedRule, Hook, Profile, Settings, StalePolicy, ToolSet,
};

use crate::{Ground, refused};

fn root() -> &'static Path {
    Path::new("/srv/w space")
}

#[test]
fn nothing_said_means_the_defaults() {
    let ground = Ground::new();
    assert_eq!(load(&ground.place.root).unwrap(), Settings::default());
    assert_eq!(parse("", root()).unwrap(), Settings::default());
    assert_eq!(parse("# only words\n[limits]\n[http]\n", root()).unwrap(), Settings::default());
}

#[test]
fn every_section_is_read() {
    let toml = r#"
        [workspace]
        folders = [{ name = "lib", path = "../lib", access = "read" }, { name = "out", path = "/out", access = "read-write" }]
        protected = { add = ["vault"], except = [".env.example"] }
        generated = [{ paths = ["**/*.pb.rs"], from = "a.proto", command = "buf generate" }]
        state_dir = "/var/state"
        [limits]
        read_lines = 10
        read_bytes = 2000
        answer_bytes = 3000
        text_bytes = 4000
        list = 5
        names = 6
        matches = 7
        context = 0
        regex_bytes = 9
        command_s = 90
        shown_ok_bytes = 100
        shown_failed_bytes = 200
        [tools]
        sets = ["core", "plan"]
        [edits]
        tolerant = ["trailing-space", "indent"]
        stale = "strict"
        [durability]
        mode = "batch"
        [approvals]
        profile = "trusting"
        wait_s = 5
        rules = [{ tool = "edit_file", paths = ["docs/**"], answer = "allow" }, { answer = "deny" }]
        [agents.ada]
        folders = [{ name = "", access = "read" }, { name = "lib", access = "read" }]
        profile = "readonly"
        tools = ["core"]
        [commands]
        deny = [{ pattern = "rm *", match = ["rm -rf x"], not_match = ["ls"], reason = "no" }]
        ask = [{ pattern = "git push *", match = ["git push"] }]
        allow = [{ pattern = "ls" }]
        network = true
        env = ["JAVA_HOME"]
        caches = ["/var/cache/build/", "/opt//cache"]
        [hooks]
        pre_tool_call = [
            { command = "check" },
            { matcher = "Edit|Write", hooks = [
                { type = "command", command = "one", timeout = 30 }, { type = "command", command = "two" }] },
        ]
        post_tool_response = [{ matcher = "*", command = "redact", timeout_s = 1, fail_open = true }]
        [leases]
        ttl_s = 100
        auto_claim = true
        [strikes]
        [watch]
        [index]
        [exec]
        memory_mb = 1
        cpu_s = 2
        processes = 3
        disk_mb = 4
        [labels]
        rules = [{ paths = ["a"], confidentiality = "INTERNAL" }]
        ceilings = [{ sink = "network", confidentiality = "PUBLIC" }]
        [retention]
        days = 3
        megabytes = 4
        trash_days = 5
        trash_megabytes = 6
        [daemon]
        idle_s = 30
        [http]
        listen = "localhost:7777"
        tokens = [{ name = "ada", token = "secret-of-ada" }]
        allowed_origins = ["https://app.example.com"]
        [telemetry]
    "#;
    let settings = parse(toml, root()).unwrap();
    let folder = |name: &str, path: &str, access| FolderSpec { name: name.into(), path: path.into(), access };
    let ada = AgentRule {
        folders: Some(BTreeMap::from([(String::new(), Access::Read), ("lib".to_owned(), Access::Read)])),
        profile: Some(Profile::ReadOnly),
        tools: Some(vec![ToolSet::Core]),
    };
    let mut wanted = Settings {
        folders: vec![
            folder("lib", "/srv/w space/../lib", Access::Read),
            folder("out", "/out", Access::ReadWrite),
        ],
        protected_add: vec!["vault".to_owned()],
        protected_except: vec![".env.example".to_owned()],
        generated: vec![GeneratedRule {
            paths: vec!["**/*.pb.rs".to_owned()],
            from: Some("a.proto".to_owned()),
            command: Some("buf generate".to_owned()),
        }],
        state_dir: Some(PathBuf::from("/var/state")),
        tools: vec![ToolSet::Core, ToolSet::Plan],
        durability: Durability::Batch,
        profile: Profile::Trusting,
        approval_wait_s: 5,
        approval_rules: vec![
            ApprovalRule {
                tool: Some("edit_file".to_owned()),
                paths: vec!["docs/**".to_owned()],
                answer: Answer::Allow,
            },
            ApprovalRule { tool: None, paths: vec![], answer: Answer::Deny },
        ],
        agents: BTreeMap::from([("ada".to_owned(), ada)]),
        idle_s: Some(30),
        http_tokens: BTreeMap::from([("secret-of-ada".to_owned(), "ada".to_owned())]),
        http_origins: vec!["https://app.example.com".to_owned()],
        http_listen: Some("127.0.0.1:7777".to_owned()),
        retention_days: 3,
        retention_megabytes: 4,
        trash_days: 5,
        trash_megabytes: 6,
        ..Settings::default()
    };
    wanted.edits.tolerant = vec!["trailing-space".to_owned(), "indent".to_owned()];
    wanted.edits.stale = StalePolicy::Strict;
    let rule = |pattern: &str, matches: &[&str], not_matches: &[&str], reason: &str, answer| CommandRule {
        pattern: pattern.to_owned(),
        matches: matches.iter().map(|text| (*text).to_owned()).collect(),
        not_matches: not_matches.iter().map(|text| (*text).to_owned()).collect(),
        reason: reason.to_owned(),
        answer,
    };
    wanted.commands = Commands {
        rules: vec![
            rule("rm *", &["rm -rf x"], &["ls"], "no", Answer::Deny),
            rule("git push *", &["git push"], &[], "", Answer::Ask),
            rule("ls", &[], &[], "", Answer::Allow),
        ],
        network: true,
        env: vec!["JAVA_HOME".to_owned()],
        caches: vec![PathBuf::from("/var/cache/build"), PathBuf::from("/opt/cache")],
    };
    let hook = |matcher: Option<&str>, command: &str, timeout_s, fail_open| Hook {
        matcher: matcher.map(str::to_owned),
        command: command.to_owned(),
        timeout_s,
        fail_open,
    };
    let files = Some("Edit|Write");
    wanted.hooks.pre_tool_call =
        vec![hook(None, "check", 10, false), hook(files, "one", 30, false), hook(files, "two", 10, false)];
    wanted.hooks.post_tool_response = vec![hook(None, "redact", 1, true)];
    wanted.exec = ExecLimits { memory_mb: 1, cpu_s: 2, processes: 3, disk_mb: 4 };
    let limits = &mut wanted.limits;
    (limits.command_s, limits.shown_ok_bytes, limits.shown_failed_bytes) = (90, 100, 200);
    (limits.read_lines, limits.read_bytes, limits.answer_bytes, limits.text_bytes) = (10, 2000, 3000, 4000);
    (limits.list, limits.names, limits.matches, limits.context, limits.regex_bytes) = (5, 6, 7, 0, 9);
    assert_eq!(settings, wanted);
}

#[test]
fn an_unknown_word_names_the_nearest() {
    for (toml, start) in [
        ("[aprovals]\n", "BAD_INPUT path=cotenant.toml line=1 given=aprovals near=approvals\n"),
        ("\n[approvals]\nprofil = 1\n", "BAD_INPUT path=cotenant.toml line=3 given=profil near=profile\n"),
        (
            "[approvals]\nprofile = \"carefull\"\n",
            "BAD_INPUT path=cotenant.toml line=2 given=carefull near=careful\n",
        ),
        ("[http]\ntoken = []\n", "BAD_INPUT path=cotenant.toml line=2 given=token near=tokens\n"),
        ("[durability]\nmode = \"FULL\"\n", "BAD_INPUT path=cotenant.toml line=2 given=FULL near=full\n"),
        ("[workspace]\nprotected = { ad = [] }\n", "BAD_INPUT path=cotenant.toml line=2 given=ad near=add\n"),
        (
            "[agents.ada]\nprofle = \"careful\"\n",
            "BAD_INPUT path=cotenant.toml line=2 given=profle near=profile\n",
        ),
        ("zzzzzz = 1\n", "BAD_INPUT path=cotenant.toml line=1 given=zzzzzz\n"),
        ("[limits]\nlist = \"x\"\n", "BAD_INPUT path=cotenant.toml line=2\n"),
        ("[limits]\nlist = -1\n", "BAD_INPUT path=cotenant.toml line=2\n"),
        ("[limits\n", "BAD_INPUT path=cotenant.toml line=1\n"),
        ("[[hooks]]\n", "BAD_INPUT path=cotenant.toml line=1\n"),
        ("[commands]\ndeny = [{ reason = \"x\" }]\n", "BAD_INPUT path=cotenant.toml line=2\n"),
        (
            "[commands]\nask = [{ pattern = \"x\", matches = [] }]\n",
            "BAD_INPUT path=cotenant.toml line=2 given=matches near=match\n",
        ),
        ("[commands]\ncache = []\n", "BAD_INPUT path=cotenant.toml line=2 given=cache near=caches\n"),
        ("[exec]\nmemory = 1\n", "BAD_INPUT path=cotenant.toml line=2 given=memory near=memory_mb\n"),
        (
            "[hooks]\npre_tool_use = []\n",
            "BAD_INPUT path=cotenant.toml line=2 given=pre_tool_use near=pre_tool_call\n",
        ),
        (
            "[hooks]\npre_tool_call = [{ comand = \"x\" }]\n",
            "BAD_INPUT path=cotenant.toml line=2 given=comand near=command\n",
        ),
        (
            "[hooks]\npre_tool_call = [{ hooks = [{ type = \"http\", command = \"x\" }] }]\n",
            "BAD_INPUT path=cotenant.toml line=2 given=http\n",
        ),
    ] {
        let refusal = refused(parse(toml, root()));
        assert!(refusal.to_string().starts_with(start), "{toml}: {refusal}");
        assert!(refusal.to_string().ends_with("next: correct cotenant.toml, then `cotenant config check`"));
    }
}

#[test]
fn what_the_form_allows_and_sense_does_not_is_refused() {
    for (toml, part) in [
        ("[approvals]\nwait_s = 51", "50 at most"),
        ("[limits]\nmatches = 0", "[limits] matches is 0"),
        ("[workspace]\nstate_dir = \"state\"", "must be an absolute path"),
        ("[workspace]\nstate_dir = \"/srv/w space/state\"", "must lie outside"),
        ("[workspace]\nprotected = { add = [\"a[\"] }", "has a pattern that is none"),
        ("[approvals]\nrules = [{ paths = [\"{\"], answer = \"ask\" }]", "has a pattern that is none"),
        ("[workspace]\nfolders = [{ name = \"\", path = \"a\", access = \"read\" }]", "is no name"),
        ("[workspace]\nfolders = [{ name = \"x1\", path = \"a\", access = \"read\" }]", "is no name"),
        ("[workspace]\nfolders = [{ name = \"a:b\", path = \"a\", access = \"read\" }]", "is no name"),
        (
            "[workspace]\nfolders = [{ name = \"a\", path = \"a\", access = \"read\" }, { name = \"a\", path = \"b\", access = \"read\" }]",
            "is there twice",
        ),
        ("[agents.ada]\nfolders = [{ name = \"lib\", access = \"read\" }]", "there is no folder"),
        (
            "[workspace]\nfolders = [{ name = \"lib\", path = \"l\", access = \"read\" }]\n[agents.ada]\nfolders = [{ name = \"lib\", access = \"read-write\" }]",
            "read-only for all",
        ),
        ("[limits]\ncommand_s = 3601", "must be 1 to 3600"),
        ("[limits]\ncommand_s = 0", "must be 1 to 3600"),
        ("[limits]\nshown_ok_bytes = 0", "[limits] shown_ok_bytes is 0"),
        ("[exec]\nprocesses = 0", "[exec] processes is 0"),
        ("[commands]\ndeny = [{ pattern = \" \" }]", "[commands] deny: the rule \" \" has an empty pattern"),
        ("[commands]\nask = [{ pattern = \"a\\u0000\" }]", "holds a control character"),
        ("[commands]\nask = [{ pattern = \"a\\nb\" }]", "holds a control character"),
        ("[commands]\nallow = [{ pattern = \"a\", match = [\"\"] }]", "an example that is no command"),
        (
            "[commands]\nallow = [{ pattern = \"a\", not_match = [\"\\u0000\"] }]",
            "an example that is no command",
        ),
        ("[commands]\nenv = [\"A=B\"]", "is no name of a variable"),
        ("[commands]\nenv = [\"\"]", "is no name of a variable"),
        ("[commands]\nenv = [\"1A\"]", "is no name of a variable"),
        ("[commands]\ncaches = [\"cache\"]", "must be an absolute path"),
        ("[commands]\ncaches = [\"/a/../b\"]", "must be an absolute path without .."),
        ("[commands]\ncaches = [\"~/../b\"]", "must be an absolute path without .."),
        ("[commands]\ncaches = [\"/\"]", "must neither hold the workspace"),
        ("[commands]\ncaches = [\"/srv/w space/\"]", "must neither hold the workspace"),
        ("[commands]\ncaches = [\"/srv/w space/target\"]", "nor lie in it"),
        ("[commands]\ncaches = [\"~/\"]", "the whole home folder"),
        ("[commands]\ncaches = [\"~\"]", "must be an absolute path"),
        ("[hooks]\npre_tool_call = [{}]", "neither a command nor hooks"),
        ("[hooks]\npre_tool_call = [{ command = \" \" }]", "a command is empty"),
        ("[hooks]\npre_tool_call = [{ command = \"a\\u0000\" }]", "a NUL"),
        ("[hooks]\npre_tool_call = [{ command = \"a\", hooks = [] }]", "not both"),
        ("[hooks]\npre_tool_call = [{ timeout_s = 1, hooks = [] }]", "give each of them a timeout"),
        ("[hooks]\npre_tool_call = [{ command = \"a\", timeout_s = 0 }]", "must be 1 to 30 seconds"),
        (
            "[hooks]\npost_tool_response = [{ command = \"a\", timeout_s = 31 }]",
            "[hooks] post_tool_response: a timeout is 31",
        ),
        (
            "[hooks]\npre_tool_call = [{ hooks = [{ type = \"command\", command = \"a\", timeout = 60 }] }]",
            "a timeout is 60",
        ),
        ("[hooks]\npre_tool_call = [{ command = \"a\", matcher = \"(\" }]", "is no regular expression"),
        ("[http]\nlisten = \"0.0.0.0:80\"", "[http] listen"),
        ("[http]\nlisten = \"192.168.1.1:80\"", "[http] listen"),
        ("[http]\nlisten = \"7777\"", "[http] listen"),
        ("[http]\ntokens = [{ name = \"a\", token = \"short\" }]", "at least 8"),
        ("[http]\ntokens = [{ name = \"a\", token = \"has a space in it\" }]", "no spaces"),
        ("[http]\ntokens = [{ name = \"\", token = \"long-enough\" }]", "a name"),
        (
            "[http]\ntokens = [{ name = \"a\", token = \"the-same-1\" }, { name = \"b\", token = \"the-same-1\" }]",
            "another agent's",
        ),
        ("[http]\nallowed_origins = [\"*\"]", "allowed_origins"),
        ("[http]\nallowed_origins = [\"app.example.com\"]", "allowed_origins"),
        ("[http]\nallowed_origins = [\"https://a.example/path\"]", "allowed_origins"),
    ] {
        let refusal = refused(parse(toml, root()));
        assert_eq!(refusal.code, Code::BadInput, "{toml}");
        assert!(refusal.message.contains(part), "{toml}: {refusal}");
    }
}

#[test]
fn a_cache_may_lie_in_the_home_folder() {
    let home = PathBuf::from(std::env::var_os("HOME").unwrap());
    let settings = parse("[commands]\ncaches = [\"~/.cache/cargo/\"]", root()).unwrap();
    assert_eq!(settings.commands.caches, [home.join(".cache/cargo")]);
}

#[test]
fn a_secret_is_not_repeated_in_the_refusal() {
    let refusal = refused(parse("[http]\ntokens = [{ name = \"a\", token = \"s3cret!\" }]", root()));
    assert!(!refusal.to_string().contains("s3cret"), "{refusal}");
}
