// Whether the sources of weights fit a plan, from headers alone (docs/weights.md#what-fits). `plan weights`, a launch
// and every rank ask here, so they say the same.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "planner/plan/plan.h"
#include "planner/state/weights/known_extras.h"
#include "planner/state/weights/name_groups.h"
#include "planner/state/weights/parts.h"
#include "planner/state/weights/stored_reader.h"
#include "planner/state/weights/weight_source.h"

namespace planwright {

// A tensor of the plan that a source has.
struct TakenTensor {
  int source = -1;             // index in WeightsFit::sources
  std::string key;             // in the source; of a part of a tensor, in SourceFit::stored
  bool stored = false;         // it is a part of a tensor, or a tensor in another form
  DType dtype = DType::kFp32;  // of the elements that the source gives
  int64_t width = 0;           // bytes of an element in the source: fp16 is read as fp32
  // Elements that the source has, from the first on. Fewer than those of the plan: the rows after them are drawn.
  int64_t elements = 0;
};

struct PartFit {
  std::string part, from;             // "radio_encoder.backbone"; as written
  int source = -1;                    // -1: drawn
  std::string form;                   // what names in the source lack in front: "language_model."; empty: nothing
  std::string stored_form;            // which alternative of the groups of a dialect it is ("stacked"); empty: none
  int64_t tensors = 0, elements = 0;  // of the plan
  int64_t found = 0, missing = 0, unfit = 0;  // tensors: of the right shape; not there; of another shape or type
  int64_t bytes = 0;                          // of those found, in the source
  std::vector<std::string> drawn_rows;        // "... rows 1000 to 1007 are drawn"
  std::vector<std::string> notes;             // what else to know of what is read, a line each
};

struct PassedThrough {
  const KnownExtra* extra = nullptr;
  std::vector<std::string> names;
};

struct SourceFit {
  std::string named;                     // PartSource::path
  std::string path;                      // of the files, or of the checkpoint that a run directory means
  std::unique_ptr<WeightSource> opened;  // null: it could not be opened
  std::unique_ptr<StoredReader> stored;  // null: all that is taken are tensors of their own
  std::vector<PassedThrough> passed;
  std::vector<std::string> left_over, ignored, elsewhere;  // elsewhere: tensors of parts that have another source
};

struct WeightsFit {
  std::vector<PartFit> parts;
  std::vector<SourceFit> sources;  // each path once
  // By Parameter::name with the expert's number. What is not there is drawn.
  std::map<std::string, TakenTensor> taken;
  std::vector<std::string> problems, warnings;  // all lines
  bool damaged = false;                         // a checkpoint is damaged, so that nothing is known of its tensors

  bool fits() const { return problems.empty(); }
  // Reads TakenTensor::key.
  ElementReader& ReaderOf(const TakenTensor& tensor) const;
  // OK; or, with all problems, InvalidArgument, or DataLoss for a damaged checkpoint.
  absl::Status status() const;
};

// Opens the sources, each once, and compares them with the plan. `chosen`: what to open in the place of a path, such as
// the checkpoint that another rank has found to be the newest of a run directory. `forms`: of the kinds of the plan.
WeightsFit FitWeights(const Plan& plan, const std::map<std::string, std::string>& chosen = {},
                      const KindForms& forms = BuiltInForms());

// Whether a tensor may stay unused: `ignore` has its name, or a beginning of it and a * ("vision_model.*").
bool IsIgnored(const std::vector<std::string>& ignore, const std::string& name);

}  // namespace planwright
