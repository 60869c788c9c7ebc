//! What is measured on: the program, folders of a known shape, and processes as the system sees them.

use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use cotenant_testkit::Dice;

use crate::{Failure, workspace};

/// What every group works with.
pub(crate) struct Ground {
    /// The released program.
    pub(crate) program: PathBuf,
    /// How often the costly things are measured.
    pub(crate) rounds: usize,
    /// Where folders are made; kept for the next run.
    pub(crate) base: PathBuf,
}

/// Occurs in 40 files of the tree, once each.
pub(crate) const NEEDLE: &str = "needle_in_stack";
/// Files of the tree in which it occurs.
pub(crate) const NEEDLES: usize = 40;

const FILES: usize = 20_000;
const BIG: u64 = 1 << 30;

impl Ground {
    pub(crate) fn new(program: PathBuf, rounds: usize) -> Result<Ground, Failure> {
        let base = workspace::root().join("target/bench");
        fs::create_dir_all(&base)?;
        Ok(Ground { program, rounds, base })
    }

    /// A folder of 20,000 files of about 10 KB in 500 directories, a tenth of them ignored.
    pub(crate) fn tree(&self) -> Result<PathBuf, Failure> {
        self.made("tree", |root| {
            let mut dice = Dice::seeded(7);
            fs::write(root.join(".gitignore"), "target/\n")?;
            for number in 0..FILES {
                let top = if number % 10 == 0 { "target" } else { "src" };
                let dir = root.join(format!("{top}/part{:02}/mod{:02}", number % 20, number / 20 % 25));
                fs::create_dir_all(&dir)?;
                let mut file = BufWriter::new(fs::File::create(dir.join(format!("file_{number}.rs")))?);
                let lines = 80 + dice.below(240);
                for line in 0..lines {
                    writeln!(
                        file,
                        "    let value_{line} = table.get({}).map(|x| x + {number});",
                        dice.below(1 << 20)
                    )?;
                }
                if number % (FILES / NEEDLES) == 1 {
                    writeln!(file, "// {NEEDLE}")?;
                }
            }
            Ok(())
        })
    }

    /// A folder with one file `big.txt` of 1 GB, in lines of 64 bytes.
    pub(crate) fn big(&self) -> Result<PathBuf, Failure> {
        self.made("big", |root| {
            let mut file = BufWriter::with_capacity(1 << 20, fs::File::create(root.join("big.txt"))?);
            for line in 0..BIG / 64 {
                writeln!(file, "{line:012} the quick brown fox jumps over the lazy dog again.")?;
            }
            file.flush()
        })
    }

    /// A folder that is made once; a half-made one is made again.
    fn made(&self, name: &str, make: impl FnOnce(&Path) -> std::io::Result<()>) -> Result<PathBuf, Failure> {
        let root = self.base.join(name);
        if !root.is_dir() {
            println!("making {}", root.display());
            let unfinished = self.base.join(format!("{name}.unfinished"));
            if unfinished.exists() {
                fs::remove_dir_all(&unfinished)?;
            }
            fs::create_dir_all(&unfinished)?;
            make(&unfinished)?;
            fs::rename(&unfinished, &root)?;
        }
        Ok(root)
    }
}

/// A figure of a process in MB: `VmRSS`, `VmHWM` and such, or `Pss`.
pub(crate) fn megabytes(pid: i32, field: &str) -> Result<f64, Failure> {
    let file = if field == "Pss" { "smaps_rollup" } else { "status" };
    let text = fs::read_to_string(format!("/proc/{pid}/{file}"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kilobytes =
        line.and_then(|line| line.split_whitespace().next()).ok_or("a process without figures")?;
    Ok(kilobytes.parse::<f64>()? / 1024.0)
}

/// Lets `VmHWM` begin anew from what is resident now.
pub(crate) fn forget_peak(pid: i32) -> Result<(), Failure> {
    Ok(fs::write(format!("/proc/{pid}/clear_refs"), "5")?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_made_once_and_a_half_made_one_again() {
        let base = std::env::temp_dir().join(format!("cotenant-ground-{}", std::process::id()));
        fs::create_dir_all(base.join("x.unfinished/left")).unwrap();
        let ground = Ground { program: PathBuf::new(), rounds: 1, base: base.clone() };
        let root = ground.made("x", |root| fs::write(root.join("a"), "1")).unwrap();
        assert!(root.join("a").is_file() && !root.join("left").exists());
        ground.made("x", |_| panic!("it is there")).unwrap();
        fs::remove_dir_all(base).unwrap();
    }

    #[test]
    fn this_process_has_figures() {
        let own = i32::try_from(std::process::id()).unwrap();
        forget_peak(own).unwrap();
        let (resident, peak) = (megabytes(own, "VmRSS").unwrap(), megabytes(own, "VmHWM").unwrap());
        assert!(resident > 0.5 && peak > 0.5 && megabytes(own, "Pss").unwrap() > 0.1);
        assert!(megabytes(own, "NoSuchThing").is_err());
    }
}
