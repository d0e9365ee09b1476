#include "planner/state/checkpoint/element_reader.h"

#include "absl/strings/str_cat.h"

namespace planwright {

absl::Status CheckRuns(const std::string& key, const std::vector<ElementRun>& runs, int64_t whole, int64_t room) {
  int64_t end = 0;
  for (const ElementRun& run : runs) {
    const bool inside = run.count >= 0 && run.whole >= end && run.whole <= whole && run.count <= whole - run.whole &&
                        run.local >= 0 && run.local <= room && run.count <= room - run.local;
    if (!inside) {
      return absl::InvalidArgumentError(absl::StrCat("reading tensor ", key, ": elements ", run.whole, " to ",
                                                     run.whole, " + ", run.count, " do not ascend in a tensor of ",
                                                     whole, ", or ", run.local, " is out of ", room));
    }
    end = run.whole + run.count;
  }
  return absl::OkStatus();
}

}  // namespace planwright
