// What the tensors of a part are called in files, and which of its parameters they hold: as in a whole model, as in one
// that is published alone, or in a form of a dialect (docs/weights.md#forms).
#pragma once

#include <string>
#include <vector>

#include "planner/state/forms/disk_tensors.h"
#include "planner/state/weights/fit_part.h"

namespace planwright {

struct PartNaming {
  struct Place {
    std::string name;  // of the tensor in files
    int tensor = -1;   // index in `tensors`; -1: the parameter is a tensor of its own
  };

  std::string lacked;                 // beginning that names lack (WeightPart::lacked); empty: none
  std::string text;                   // of the form (StoredForm::text)
  std::vector<Place> places;          // of each tensor that the part needs
  std::vector<DiskTensor> tensors;    // that are in another form than their parameters
  std::vector<std::string> problems;  // of lines `tensor` that do not fit the module, a line each; where parameters
                                      // are missing, also those of other namings
  int64_t found = 0;                  // parameters whose tensors the files have
  int64_t fitting = 0;                // of these, those whose tensors have their shapes
};

// The naming by which the files have the most parameters, and of several of these the one with the most right shapes;
// the first one if several have as many.
PartNaming NamingOf(const WeightPart& part, const std::vector<WantedTensor>& wanted, const WeightFiles& files);

// All names that tensors of a part may have in files.
std::vector<std::string> NamesInFiles(const WeightPart& part);

// The tensor of this name, or of the name under which others publish it; end: there is none.
std::map<std::string, WeightTensor>::const_iterator FindInFiles(const WeightFiles& files, const std::string& name);

}  // namespace planwright
