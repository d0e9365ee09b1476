// What `plan export --like SOURCE` takes over from a Hugging Face folder: every tensor that the run does not train, and
// the files beside the weights (docs/hugging_face.md#like).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/exchange/findings.h"
#include "planner/exchange/import_folder.h"
#include "planner/exchange/out_tensor.h"
#include "planner/exchange/write_folder.h"

namespace planwright {

// A problem for each number of the run that SOURCE's config.json says otherwise, and for each part that it lacks.
// The modules' names are for a message that names a way out; empty: the run has no such part.
void CompareWithSource(const SaidModel& run, const ReadFolder& source, Findings& findings,
                       const std::string& encoder_module = "", const std::string& language_module = "");

// Adds what SOURCE stores as a copy of one of `ours`, such as the head of a tied model: another name of its numbers.
void AddCopies(const ReadFolder& source, std::vector<OutTensor>& ours);

// The tensors of SOURCE that are not among `ours`, as they are there. They keep a pointer to the source's files. A
// problem for each of `ours` that SOURCE does not have, or has in another shape; but not for a final norm, which
// published files do not store. A problem too for each scale of SOURCE's encoder that is not 1: blocks of a run have
// none.
std::vector<OutTensor> PassedThroughTensors(const ReadFolder& source, const std::vector<OutTensor>& ours,
                                            Findings& findings);

// config.json, generation config, tokenizer, template, processor and remote code. A file that is a link out of the
// folder stays behind, as others get to see what is copied: who made the folder could name any file of this user. Links
// of a hub's cache (snapshots/REVISION/FILE -> ../../blobs/HASH) are meant. A problem if config.json leads elsewhere. A
// note names the files that stay behind. Unavailable, with the path, if a folder cannot be read.
absl::StatusOr<std::vector<OutFile>> FilesBesideWeights(const std::string& source, Findings& findings);

}  // namespace planwright
