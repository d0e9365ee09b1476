// What kinds of inputs share: their files in a folder, and the caller who takes them.
#pragma once

#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/cli/any_bytes.h"

namespace planwright::testing {

// `piece` over and over, at most `count` bytes.
inline std::string Times(size_t count, const std::string& piece) {
  std::string text;
  while (text.size() + piece.size() <= count) text += piece;
  return text;
}

// Writes the files of one kind of input and hands them to the caller.
class Inputs {
 public:
  Inputs(std::string folder, const GiveInput& give) : folder_(std::move(folder)), give_(give) {}

  void Refused(const std::vector<std::string>& arguments, const std::string& what = "") const {
    give_({what, arguments, true});
  }
  void Ends(const std::vector<std::string>& arguments, const std::string& what = "") const {
    give_({what, arguments, false});
  }
  std::string Write(const std::string& name, const std::string& bytes) const {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  const std::string& folder() const { return folder_; }

 private:
  const std::string folder_;
  const GiveInput& give_;
};

// Kinds of data (any_data.cc).
void PatternsOfManyFiles(const Inputs& in);
void ListsOfSources(const Inputs& in);

// Kinds of plans (any_plans.cc).
void PlansThatClaimTooMuch(const Inputs& in);
void PlansOfOneItemOverAndOver(const Inputs& in);
void PlansOfItemsThatDiffer(const Inputs& in);
void PlansThatMultiply(const Inputs& in);

}  // namespace planwright::testing
