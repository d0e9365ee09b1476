#include "planner/verify/stream_values.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

using std::string;

std::vector<const Instruction*> PointersTo(const std::vector<Instruction>& list) {
  std::vector<const Instruction*> pointers;
  for (const Instruction& instruction : list) pointers.push_back(&instruction);
  return pointers;
}

bool HasSeveralStreams(const std::vector<Instruction>& list) {
  return std::any_of(list.begin(), list.end(), [](const Instruction& instruction) { return !instruction.stream.empty(); });
}

bool IsState(const string& name) { return !name.empty() && (name[0] == '$' || name[0] == '%'); }

string NameOf(const string& stream) { return stream.empty() ? "the main stream" : absl::StrCat("stream ", stream); }

}  // namespace

StreamValues::StreamValues(const std::vector<Instruction>& list)
    : order_(HasSeveralStreams(list) ? PointersTo(list) : std::vector<const Instruction*>()), several_(HasSeveralStreams(list)) {}

string StreamValues::Step(const Instruction& instruction) {
  if (!several_) return "";
  ++place_;
  if (instruction.stream.empty()) last_on_main_ = place_;
  string problem;
  const auto keep = [&](string found) {
    if (problem.empty()) problem = std::move(found);
  };
  for (const string& input : instruction.inputs) keep(Read(instruction, input));
  for (const ExchangePart& part : instruction.parts) {
    if (part.send) keep(Read(instruction, part.value));
    if (part.shift == 0) keep(Read(instruction, part.sample_rows));
  }
  for (const Output& output : instruction.outputs) {
    if (IsState(output.name)) continue;
    values_[output.name] = {place_, {}};
    if (!instruction.stream.empty()) beside_.emplace(place_, output.name);
  }
  for (const string& value : instruction.frees) keep(Free(instruction, value));
  return problem;
}

string StreamValues::Read(const Instruction& instruction, const string& value) {
  if (IsState(value)) return "";
  Value& known = values_[value];
  known.readers.push_back(place_);
  if (!instruction.stream.empty()) beside_.emplace(place_, value);
  if (known.made < 0 || order_.Ordered(known.made, place_)) return "";
  return absl::StrCat(string(OpName(instruction.kind)), " on ", NameOf(instruction.stream), " uses ", value,
                      ", which another stream makes and it does not wait for");
}

string StreamValues::Free(const Instruction& instruction, const string& value) const {
  auto known = values_.find(value);
  if (known == values_.end()) return "";
  const auto under_way = [&](int reader) { return reader != place_ && !order_.Ordered(reader, place_); };
  if (std::none_of(known->second.readers.begin(), known->second.readers.end(), under_way)) return "";
  return absl::StrCat(string(OpName(instruction.kind)), " on ", NameOf(instruction.stream), " frees ", value,
                      ", which another stream may still be reading");
}

string StreamValues::End() const {
  for (const auto& [place, value] : beside_) {
    if (last_on_main_ < 0 || !order_.Ordered(place, last_on_main_)) {
      return absl::StrCat("ends without having waited for the stream that touches ", value);
    }
  }
  return "";
}

}  // namespace planwright
