#include "planner/wire/rendezvous/store_contents.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace planwright {
namespace {

StoreMessage Done(int64_t number = 0) { return {static_cast<uint8_t>(StoreReply::kDone), number, {}}; }
StoreMessage Done(std::vector<std::string> fields) {
  return {static_cast<uint8_t>(StoreReply::kDone), 0, std::move(fields)};
}

// How many fields an operation has; `each`: any number of times so many.
bool FieldsFit(StoreOp op, size_t fields) {
  switch (op) {
    case StoreOp::kSet: return fields % 2 == 0;
    case StoreOp::kGet:
    case StoreOp::kWait:
    case StoreOp::kCheck: return true;
    case StoreOp::kCompareSet: return fields == 3;
    case StoreOp::kAdd:
    case StoreOp::kDelete: return fields == 1;
    case StoreOp::kAppend: return fields == 2;
    case StoreOp::kCount:
    case StoreOp::kCancel: return fields == 0;
  }
  return false;
}

}  // namespace

StoreMessage Refused(std::string why) { return {static_cast<uint8_t>(StoreReply::kRefused), 0, {std::move(why)}}; }

StoreMessage StoreContents::Do(const StoreMessage& request) {
  const auto op = static_cast<StoreOp>(request.kind);
  const std::vector<std::string>& fields = request.fields;
  if (!FieldsFit(op, fields.size()))
    return Refused(absl::StrCat("it knows no operation ", request.kind, " with ", fields.size(), " fields"));
  switch (op) {
    case StoreOp::kSet: return SetAll(fields);
    case StoreOp::kGet: {
      std::vector<std::string> values;
      for (const std::string& key : fields) values.push_back(values_.at(key));
      return Done(std::move(values));
    }
    case StoreOp::kCompareSet: return CompareSet(fields[0], fields[1], fields[2]);
    case StoreOp::kAdd: return Add(fields[0], request.number);
    case StoreOp::kCheck:
      return Done(std::all_of(fields.begin(), fields.end(), [&](const std::string& key) { return Has(key); }) ? 1 : 0);
    case StoreOp::kDelete: {
      const auto at = values_.find(fields[0]);
      if (at == values_.end()) return Done(0);
      bytes_ -= Cost(at->first, at->second.size());
      values_.erase(at);
      return Done(1);
    }
    case StoreOp::kCount: return Done(static_cast<int64_t>(values_.size()));
    case StoreOp::kAppend: {
      const auto at = values_.find(fields[0]);
      return Put(fields[0], at == values_.end() ? fields[1] : at->second + fields[1]) ? Done() : Full();
    }
    case StoreOp::kWait:
    case StoreOp::kCancel: break;
  }
  return Done();
}

StoreMessage StoreContents::Full() const {
  return Refused(absl::StrCat("it is full: it holds ", bytes_, " of at most ", most_bytes_, " bytes"));
}

bool StoreContents::Put(const std::string& key, std::string value) {
  const auto at = values_.find(key);
  const size_t before = at == values_.end() ? 0 : Cost(key, at->second.size());
  if (bytes_ - before + Cost(key, value.size()) > most_bytes_) return false;
  bytes_ += Cost(key, value.size()) - before;
  if (at != values_.end()) {
    at->second = std::move(value);
  } else {
    values_.emplace(key, std::move(value));
    appeared_(key);
  }
  return true;
}

StoreMessage StoreContents::SetAll(const std::vector<std::string>& fields) {
  // All or nothing. Keys that exist are counted as if they were new, so this may refuse a little early.
  size_t added = 0;
  for (size_t i = 0; i < fields.size(); i += 2) added += Cost(fields[i], fields[i + 1].size());
  if (fields.size() > 2 && bytes_ + added > most_bytes_) return Full();
  for (size_t i = 0; i < fields.size(); i += 2) {
    if (!Put(fields[i], fields[i + 1])) return Full();
  }
  return Done();
}

StoreMessage StoreContents::CompareSet(const std::string& key, const std::string& expected,
                                       const std::string& desired) {
  const auto at = values_.find(key);
  // As in c10d: a key that does not exist counts as empty, and what was expected of it is the answer.
  if (at == values_.end() && !expected.empty()) return Done({expected});
  if (at != values_.end() && at->second != expected) return Done({at->second});
  if (!Put(key, desired)) return Full();
  return Done({desired});
}

StoreMessage StoreContents::Add(const std::string& key, int64_t number) {
  int64_t before = 0, sum = 0;
  if (const auto at = values_.find(key); at != values_.end() && !absl::SimpleAtoi(at->second, &before))
    return Refused("it cannot add to a value that is no number");
  if (__builtin_add_overflow(before, number, &sum)) return Refused("a sum does not fit into 64 bits");
  if (!Put(key, std::to_string(sum))) return Full();
  return Done(sum);
}

}  // namespace planwright
