#include "planner/verify/happens_before.h"

#include <algorithm>

namespace planwright {

HappensBefore::HappensBefore(const std::vector<const Instruction*>& program) {
  for (const Instruction* op : program) stream_ids_.emplace(op->stream, static_cast<int>(stream_ids_.size()));
  const size_t streams = stream_ids_.size();
  if (streams <= 1) return;  // program order says it all
  std::vector<int> last(streams, -1);
  std::map<std::string, int> signalled;
  known_.assign(program.size(), std::vector<int>(streams, -1));
  for (size_t i = 0; i < program.size(); ++i) {
    const int stream = stream_ids_[program[i]->stream];
    stream_.push_back(stream);
    std::vector<int>& known = known_[i];
    const auto after = [&](int place) {
      for (size_t s = 0; s < streams; ++s) known[s] = std::max(known[s], known_[static_cast<size_t>(place)][s]);
      int& own = known[static_cast<size_t>(stream_[static_cast<size_t>(place)])];
      own = std::max(own, place);
    };
    if (last[static_cast<size_t>(stream)] >= 0) after(last[static_cast<size_t>(stream)]);
    for (const std::string& event : program[i]->waits) {
      if (auto it = signalled.find(event); it != signalled.end()) after(it->second);
    }
    for (const std::string& event : program[i]->signals) signalled.emplace(event, static_cast<int>(i));
    last[static_cast<size_t>(stream)] = static_cast<int>(i);
  }
}

bool HappensBefore::Ordered(int first, int second) const {
  if (known_.empty()) return first < second;
  return known_[static_cast<size_t>(second)][static_cast<size_t>(stream_[static_cast<size_t>(first)])] >= first;
}

}  // namespace planwright
