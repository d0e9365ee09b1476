// The keys and values of a store, and what the operations do to them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planner/wire/rendezvous/store_protocol.h"

namespace planwright {

class StoreContents {
 public:
  // What all keys and values may take together. A run of 10,000 ranks needs a few MB.
  static constexpr size_t kMostBytes = size_t{256} << 20;
  static constexpr size_t kBytesOfAKey = 128;  // what a key costs beside its bytes

  // `appeared`: is called with each key that did not exist before. `most_bytes`: the bound, for tests a smaller one.
  explicit StoreContents(std::function<void(const std::string&)> appeared, size_t most_bytes = kMostBytes)
      : appeared_(std::move(appeared)), most_bytes_(most_bytes) {}

  bool Has(const std::string& key) const { return values_.contains(key); }
  // Does a request and returns the reply. A kGet or kWait must have all its keys.
  StoreMessage Do(const StoreMessage& request);

 private:
  StoreMessage Full() const;
  StoreMessage SetAll(const std::vector<std::string>& fields);
  StoreMessage CompareSet(const std::string& key, const std::string& expected, const std::string& desired);
  StoreMessage Add(const std::string& key, int64_t number);
  // Sets a value; false: there is no room for it, and nothing has changed.
  bool Put(const std::string& key, std::string value);
  size_t Cost(const std::string& key, size_t value) const { return kBytesOfAKey + key.size() + value; }

  std::unordered_map<std::string, std::string> values_;
  size_t bytes_ = 0;  // the cost of all
  const std::function<void(const std::string&)> appeared_;
  const size_t most_bytes_;
};

StoreMessage Refused(std::string why);

}  // namespace planwright
