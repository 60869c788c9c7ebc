//! `find`, `rg` and `fd`: they look, unless told to do more.

use super::tools::named;
use super::{Options, operands};
use crate::policy::part::Arg;

/// Tests and actions of `find` without a word.
const FIND_ALONE: &str = "-print -print0 -ls -prune -quit -depth -d -mount -xdev -empty -not -a -and -o -or -true -false \
    -daystart -follow -noleaf -readable -writable -executable -nouser -nogroup -nowarn -warn ( ) ! , -H \
    -L -P";

/// Those that take one.
const FIND_VALUED: &str = "-name -iname -path -ipath -wholename -iwholename -regex -iregex -regextype -type -xtype -maxdepth \
    -mindepth -size -newer -anewer -cnewer -newermt -newerct -mtime -mmin -atime -amin -ctime -cmin \
    -perm -user -group -uid -gid -links -inum -samefile -lname -ilname -printf -fstype -used";

const RG: Options = Options {
    flags: "sSiwxvnNHIlcoFPUuL0hqpab.",
    valued: "egtTACBmMdrEjf",
    long: "regexp= glob= iglob= type= type-not= type-list after-context= before-context= context= max-count= max-columns= \
           max-columns-preview max-depth= maxdepth= replace= encoding= threads= file= ignore-case smart-case case-sensitive \
           word-regexp line-regexp invert-match line-number no-line-number with-filename no-filename files \
           files-with-matches files-without-match count count-matches only-matching fixed-strings pcre2 multiline \
           multiline-dotall unrestricted follow null hidden no-ignore no-ignore-vcs no-ignore-parent no-ignore-global \
           no-ignore-dot no-messages quiet pretty text heading no-heading column no-column json stats sort= sortr= color= \
           colors= trim passthru vimgrep crlf one-file-system max-filesize= no-config debug trace version help \
           context-separator= field-match-separator= byte-offset include-zero ignore-file= no-require-git no-unicode",
};

const FD: Options = Options {
    flags: "HIusigFalLp0qV1h",
    valued: "dtEecSjo",
    long: "hidden no-ignore unrestricted case-sensitive ignore-case glob fixed-strings absolute-path list-details follow \
           full-path max-depth= min-depth= exact-depth= type= extension= exclude= size= changed-within= changed-before= \
           color= max-results= print0 quiet version help no-ignore-vcs",
};

/// Whether the search neither runs nor writes nor deletes. What `find -exec` runs is judged as parts of its own.
pub(super) fn is_read_only(name: &str, rest: &[Arg]) -> bool {
    match name {
        "find" => find(rest),
        "rg" => operands(rest, &RG).is_some(),
        _ => operands(rest, &FD).is_some(),
    }
}

fn find(rest: &[Arg]) -> bool {
    let mut words = rest.iter();
    let mut starts = true;
    while let Some(arg) = words.next() {
        match arg.literal() {
            Some(text) if named(FIND_VALUED, text) => {
                if !words.next().is_some_and(|value| value.word.is_tame()) {
                    return false;
                }
                starts = false;
            }
            Some(text) if named(FIND_ALONE, text) || text.starts_with("-O") => {
                starts &= !text.starts_with(['(', '!'])
            }
            Some("-exec" | "-execdir") => {
                // Its words end with `;` or `+`; without either it is an error of find.
                if !words.by_ref().any(|word| matches!(word.literal(), Some(";" | "+"))) {
                    return false;
                }
                starts = false;
            }
            Some(text) if starts && !text.starts_with('-') => {}
            None if starts && arg.word.is_operand() => {}
            _ => return false,
        }
    }
    true
}
