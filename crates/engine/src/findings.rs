//! What the pipeline finds beside its work: foreign writes on displaced files, and what only a human can decide.

use std::sync::PoisonError;

use cotenant_coord::LandedFile;
use cotenant_model::Change;

use crate::pipeline::Question;
use crate::workspace::Workspace;

impl Workspace {
    /// Takes over what was found since the last call: sessions that saw the files are told, questions are kept for the
    /// human. Returns the changes, for the journal.
    pub fn take_findings(&self) -> Vec<Change> {
        let found = self.pipeline().observed();
        let now = self.clock().steady();
        for change in &found {
            let landed = |file: &cotenant_model::ChangeFile| LandedFile {
                at: file.at.clone(),
                post: file.post,
                lines: Vec::new(),
            };
            let files: Vec<LandedFile> = change.files.iter().map(landed).collect();
            self.coord().landed(None, change.id, &files, now);
        }
        let asked = self.pipeline().questions();
        if !asked.is_empty() {
            self.open_questions().extend(asked);
        }
        found
    }

    /// What a human should look at, oldest first: from recovery and from commits that met a foreign writer.
    pub fn questions(&self) -> Vec<Question> {
        self.open_questions().clone()
    }

    fn open_questions(&self) -> std::sync::MutexGuard<'_, Vec<Question>> {
        self.questions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
