//! The project's own commands: how it is tested, built and installed, told by the files at its root.

use serde_json::Value;

/// What is wanted of the project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Test,
    Build,
    Install,
}

impl Task {
    pub(super) fn parse(word: &str) -> Option<Task> {
        [("test", Task::Test), ("build", Task::Build), ("install", Task::Install)]
            .into_iter()
            .find(|(name, _)| *name == word)
            .map(|(_, task)| task)
    }
}

/// What the root of a project has.
pub(super) trait Root {
    /// Whether there is a file of that name.
    fn has(&self, name: &str) -> bool;
    /// A file's text.
    fn text(&self, name: &str) -> Option<String>;
}

/// What a kind of project does for a task.
type Kind = fn(&dyn Root, Task) -> Option<String>;

/// The command for a task, by the first kind of project that has one; `None` where there is none.
pub(super) fn command(root: &impl Root, task: Task) -> Option<String> {
    let kinds: [Kind; 10] = [just, make, cargo, node, go, maven, gradle, python, dotnet, composer];
    kinds.iter().find_map(|kind| kind(root, task))
}

fn words(command: &str) -> Option<String> {
    Some(command.to_owned())
}

/// A recipe of that name at the start of a line.
fn recipe(text: &str, name: &str) -> bool {
    text.lines().any(|line| {
        line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with(':') && !rest.contains(":="))
    })
}

fn just(root: &dyn Root, task: Task) -> Option<String> {
    let text = root.text("justfile").or_else(|| root.text("Justfile"))?;
    by_recipe(&text, "just", task)
}

fn make(root: &dyn Root, task: Task) -> Option<String> {
    let text = ["GNUmakefile", "makefile", "Makefile"].iter().find_map(|name| root.text(name))?;
    match task {
        Task::Test if recipe(&text, "check") && !recipe(&text, "test") => words("make check"),
        // `make install` writes to the system; what is installed here are dependencies.
        Task::Install => ["deps", "setup", "bootstrap"]
            .iter()
            .find(|name| recipe(&text, name))
            .map(|name| format!("make {name}")),
        _ => by_recipe(&text, "make", task),
    }
}

fn by_recipe(text: &str, runner: &str, task: Task) -> Option<String> {
    let names: &[&str] = match task {
        Task::Test => &["test", "tests"],
        Task::Build => &["build", "all"],
        Task::Install => &["install-deps", "deps", "setup", "bootstrap"],
    };
    names.iter().find(|name| recipe(text, name)).map(|name| format!("{runner} {name}"))
}

fn cargo(root: &dyn Root, task: Task) -> Option<String> {
    root.has("Cargo.toml").then_some(())?;
    words(match task {
        Task::Test => "cargo test --workspace",
        Task::Build => "cargo build --workspace",
        Task::Install => "cargo fetch",
    })
}

fn node(root: &dyn Root, task: Task) -> Option<String> {
    let manifest: Value = serde_json::from_str(&root.text("package.json")?).ok()?;
    let locks =
        [("pnpm-lock.yaml", "pnpm"), ("yarn.lock", "yarn"), ("bun.lock", "bun"), ("bun.lockb", "bun")];
    let runner = locks.iter().find(|(lock, _)| root.has(lock)).map_or("npm", |(_, runner)| runner);
    let script = |name: &str| manifest.get("scripts")?.get(name)?.as_str().filter(|text| !text.is_empty());
    match task {
        Task::Test => script("test").map(|_| format!("{runner} test")),
        Task::Build => script("build").map(|_| format!("{runner} run build")),
        Task::Install if runner == "npm" && root.has("package-lock.json") => words("npm ci"),
        Task::Install => Some(format!("{runner} install")),
    }
}

fn go(root: &dyn Root, task: Task) -> Option<String> {
    root.has("go.mod").then_some(())?;
    words(match task {
        Task::Test => "go test ./...",
        Task::Build => "go build ./...",
        Task::Install => "go mod download",
    })
}

fn maven(root: &dyn Root, task: Task) -> Option<String> {
    root.has("pom.xml").then_some(())?;
    let mvn = if root.has("mvnw") { "./mvnw" } else { "mvn" };
    Some(match task {
        Task::Test => format!("{mvn} -B test"),
        Task::Build => format!("{mvn} -B package -DskipTests"),
        Task::Install => format!("{mvn} -B dependency:resolve"),
    })
}

fn gradle(root: &dyn Root, task: Task) -> Option<String> {
    (root.has("build.gradle") || root.has("build.gradle.kts")).then_some(())?;
    let gradle = if root.has("gradlew") { "./gradlew" } else { "gradle" };
    Some(match task {
        Task::Test => format!("{gradle} test"),
        Task::Build => format!("{gradle} assemble"),
        Task::Install => format!("{gradle} dependencies"),
    })
}

fn python(root: &dyn Root, task: Task) -> Option<String> {
    let project = root.text("pyproject.toml");
    let is_python = project.is_some()
        || ["setup.py", "setup.cfg", "requirements.txt", "pytest.ini", "tox.ini", "Pipfile"]
            .iter()
            .any(|name| root.has(name));
    is_python.then_some(())?;
    let tool = if root.has("uv.lock") {
        "uv run "
    } else if root.has("poetry.lock") {
        "poetry run "
    } else {
        ""
    };
    match task {
        Task::Test if root.has("manage.py") => Some(format!("{tool}python manage.py test")),
        Task::Test => Some(format!("{tool}python -m pytest")),
        Task::Build => project.map(|_| format!("{tool}python -m build")),
        Task::Install if root.has("uv.lock") => words("uv sync"),
        Task::Install if root.has("poetry.lock") => words("poetry install"),
        Task::Install if root.has("requirements.txt") => words("python -m pip install -r requirements.txt"),
        Task::Install => words("python -m pip install -e ."),
    }
}

fn dotnet(root: &dyn Root, task: Task) -> Option<String> {
    (root.has("Directory.Build.props") || root.has("global.json")).then_some(())?;
    words(match task {
        Task::Test => "dotnet test",
        Task::Build => "dotnet build",
        Task::Install => "dotnet restore",
    })
}

fn composer(root: &dyn Root, task: Task) -> Option<String> {
    let manifest: Value = serde_json::from_str(&root.text("composer.json")?).ok()?;
    let script = |name: &str| manifest.get("scripts").and_then(|scripts| scripts.get(name)).is_some();
    match task {
        Task::Test if script("test") => words("composer test"),
        Task::Test => root.has("phpunit.xml.dist").then(|| "vendor/bin/phpunit".to_owned()),
        Task::Build => script("build").then(|| "composer build".to_owned()),
        Task::Install => words("composer install"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    struct Files(BTreeMap<&'static str, &'static str>);

    impl Root for Files {
        fn has(&self, name: &str) -> bool {
            self.0.contains_key(name)
        }
        fn text(&self, name: &str) -> Option<String> {
            self.0.get(name).map(|text| (*text).to_owned())
        }
    }

    fn commands(files: &[(&'static str, &'static str)]) -> [Option<String>; 3] {
        let root = Files(files.iter().copied().collect());
        [Task::Test, Task::Build, Task::Install].map(|task| command(&root, task))
    }

    fn are(files: &[(&'static str, &'static str)], test: &str, build: &str, install: &str) {
        let found = commands(files).map(Option::unwrap_or_default);
        assert_eq!(found, [test, build, install], "{files:?}");
    }

    #[test]
    fn each_kind_of_project_has_its_own_commands() {
        are(&[("Cargo.toml", "")], "cargo test --workspace", "cargo build --workspace", "cargo fetch");
        are(&[("go.mod", "")], "go test ./...", "go build ./...", "go mod download");
        let package = "{\"scripts\":{\"test\":\"jest\",\"build\":\"vite build\"}}";
        are(&[("package.json", package)], "npm test", "npm run build", "npm install");
        are(&[("package.json", package), ("package-lock.json", "")], "npm test", "npm run build", "npm ci");
        are(
            &[("package.json", package), ("pnpm-lock.yaml", "")],
            "pnpm test",
            "pnpm run build",
            "pnpm install",
        );
        are(&[("package.json", "{}"), ("yarn.lock", "")], "", "", "yarn install");
        are(
            &[("pom.xml", ""), ("mvnw", "")],
            "./mvnw -B test",
            "./mvnw -B package -DskipTests",
            "./mvnw -B dependency:resolve",
        );
        are(&[("build.gradle", "")], "gradle test", "gradle assemble", "gradle dependencies");
        are(&[("requirements.txt", "")], "python -m pytest", "", "python -m pip install -r requirements.txt");
        are(
            &[("pyproject.toml", ""), ("uv.lock", "")],
            "uv run python -m pytest",
            "uv run python -m build",
            "uv sync",
        );
        are(&[("global.json", "")], "dotnet test", "dotnet build", "dotnet restore");
        are(
            &[("composer.json", "{}"), ("phpunit.xml.dist", "")],
            "vendor/bin/phpunit",
            "",
            "composer install",
        );
        are(&[], "", "", "");
    }

    #[test]
    fn what_the_project_wrote_down_itself_comes_first() {
        let makefile = "CC := gcc\nbuild: main.o\n\t$(CC) main.o\ntest:\n\t./t\ninstall:\n\tcp a /usr\n";
        are(&[("Makefile", makefile), ("Cargo.toml", "")], "make test", "make build", "cargo fetch");
        are(&[("Makefile", "check:\n\t./t\n")], "make check", "", "");
        are(
            &[("justfile", "test:\n  cargo nextest run\n"), ("Cargo.toml", "")],
            "just test",
            "cargo build --workspace",
            "cargo fetch",
        );
        are(&[("Makefile", "test := 1\n")], "", "", "");
    }

    #[test]
    fn what_does_not_parse_is_no_project() {
        are(&[("package.json", "{")], "", "", "");
        assert_eq!(Task::parse("deploy"), None);
        assert_eq!(Task::parse("build"), Some(Task::Build));
    }
}
