//! The public sets of recorded answers that this project holds, recognized by their content.

/// A public set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Public {
    /// The SHA-256 of the file, in hexadecimal digits.
    pub sha256: &'static str,
    /// The name of the file.
    pub file: &'static str,
    /// The name of the set.
    pub name: &'static str,
    /// The kind of its questions, as in marks.
    pub kind: &'static str,
    /// The source of the answers.
    pub source: &'static str,
    /// The license of the source.
    pub license: &'static str,
    /// The years of the models.
    pub years: &'static str,
}

/// All public sets.
pub const PUBLIC: [Public; 4] = [
    Public {
        sha256: "2d3ec22f01517e119cfc49242be338919e5b552476ea81afb1e13df5848aa8b9",
        file: "zeroeval_gsm_44models.csv",
        name: "GSM8K",
        kind: "number",
        source: "results of WildEval/ZeroEval",
        license: "Apache-2.0",
        years: "2024",
    },
    Public {
        sha256: "8fb8d8790d377cdae7f50f6da1a5be1488908724cd8435ea3865c93b677e5a2d",
        file: "zeroeval_math-l5_43models.csv",
        name: "MATH level 5",
        kind: "number",
        source: "results of WildEval/ZeroEval",
        license: "Apache-2.0",
        years: "2024",
    },
    Public {
        sha256: "51746afe46491448a7540328537a12515cddcd67b0e6b2c00888628ff5939c4e",
        file: "zeroeval_crux_51models.csv",
        name: "CRUXEval",
        kind: "exact",
        source: "results of WildEval/ZeroEval",
        license: "Apache-2.0",
        years: "2024",
    },
    Public {
        sha256: "271e9a01204df7c514c0f0c66aaae7918939903599524197d5bb386f2bdd4fd9",
        file: "mmlu_pro_29models.csv",
        name: "MMLU-Pro",
        kind: "choice",
        source: "evaluation logs of TIGER-AI-Lab/MMLU-Pro",
        license: "Apache-2.0",
        years: "2023 and 2024",
    },
];

impl Public {
    /// Returns the public set with this content.
    pub fn find(sha256: &str) -> Option<&'static Self> {
        PUBLIC.iter().find(|set| set.sha256 == sha256)
    }
}
