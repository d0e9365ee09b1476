// The index of a plan's data, made with a user before the terminal: by `plan data index`, and by `plan launch` and
// `plan measure` before they start ranks (docs/training/data.md#index).
#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "planner/data/samples/index_files.h"
#include "planner/data/samples/sample_source.h"
#include "planner/plan/plan.h"

namespace planwright {

struct DataIndexResult {
  std::vector<IndexedSource> sources;
  double seconds = 0;
  std::vector<SourceCounts> counts;  // of each, if samples can be made of all
};

// UpdateIndex. Says on stderr that shards are read, and on a terminal how far it is; nothing where nothing is to be
// done.
absl::StatusOr<DataIndexResult> MakeDataIndex(const DataPlan& data, const IndexOptions& options);

// How many documents of a source are damaged, why, what becomes of them and where they are listed, in one line; empty:
// none is.
std::string DamagedLine(const IndexedSource& source);

// Prints DamagedLine of all sources of a plan whose index is at hand, as a note on stderr. No index is made.
void TellOfDamagedAtHand(const Plan& plan);

std::string DataIndexText(const DataPlan& data, const DataIndexResult& result, size_t width);
nlohmann::ordered_json DataIndexJson(const DataPlan& data, const DataIndexResult& result);

// Prints why there is no index, and returns the exit status: kExitInvalid for mistakes of the data, kExitStorage where
// it cannot be written, else kExitUsage.
int ReportNoIndex(const absl::Status& status);

// Whether samples can be made of the indexed documents. `source`: OpenSources of the plan, which opens them as ranks
// do. Prints what is wrong with documents that do not fit the plan. `set`: whose plan it is (PlanOfSet), or null.
// kExitSuccess, or as ReportNoIndex.
int CheckDocuments(const Plan& plan, const absl::StatusOr<std::unique_ptr<SampleSource>>& source,
                   const EvaluationSet* set = nullptr);

// What sources of samples look at, of an evaluation set.
Plan PlanOfSet(const Plan& plan, const EvaluationSet& set);

// Warns on stderr if a set reads samples of its sources more than once in each evaluation.
void WarnOfRepeats(const EvaluationSet& set, const std::vector<SourceCounts>& counts);

// Before ranks start: the index of all evaluation sets of the plan whose data is of kind sources. kExitSuccess, or as
// ReportNoIndex.
int MakeIndexOfSets(const Plan& plan, const IndexOptions& options = {});

// The same, and before it the index of the data that is trained on, if that is of kind sources. Says on stderr of which
// sources it made one, and checks the documents. `digests`: gets Manifest::data of such a plan. kExitSuccess, or as
// ReportNoIndex.
int MakeIndexBeforeRanks(const Plan& plan, std::map<std::string, std::string>& digests);

}  // namespace planwright
