// One object of a config.json, key by key. Each key that is asked for counts as known; what is left at the end is
// reported by its path, so that nothing that a stranger wrote is silently ignored.
#pragma once

#include <initializer_list>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "planner/exchange/findings.h"
#include "planner/exchange/model_sizes.h"

namespace planwright {

class ConfigKeys {
 public:
  using Json = nlohmann::ordered_json;
  using Names = std::initializer_list<const char*>;  // a key and its other names, in the order in which they count

  // `path`: of the object, "" or "text_config". `keys` outlives this.
  ConfigKeys(const Json& keys, std::string path, Findings& findings);

  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view key) const;
  Findings& findings() const { return findings_; }

  // The value under the first of the names that has one, and that name's path; null counts as none. Two names with
  // different values are a problem.
  const Json* Find(Names names, std::string* path = nullptr);
  bool Has(Names names) { return Find(names) != nullptr; }

  // A size from 1 to 2^24. `from` is its path, or what a default is called. A value of another kind is a problem, and a
  // missing one is a problem where there is no default; the result is then 0.
  Sourced<int64_t> Size(Names names);
  Sourced<int64_t> Size(Names names, int64_t otherwise, const std::string& default_of);
  // A size from 0 to 2^24; none if the key is not there.
  std::optional<Sourced<int64_t>> Count(Names names);
  // A finite number above 0.
  Sourced<double> Number(Names names, double otherwise, const std::string& default_of);
  // True or false.
  Sourced<bool> Flag(Names names, bool otherwise, const std::string& default_of);
  std::optional<Sourced<std::string>> Word(Names names);

  // A key that may only have this value, or be null or absent.
  void Only(const char* key, const Json& value, const std::string& why);
  // A key that may only be null, false, 0, an empty object or absent.
  void Nothing(const char* key, const std::string& why);
  // Keys that say nothing of what a recipe's model says: of generation, of a tokenizer, of files.
  void Known(Names names);
  // Keys that are not taken over, and that people should know of: a note with the value where one is there and is not
  // null.
  void NotTaken(Names names, const std::string& why);

  void WrongValue(std::string_view key, const Json& value, const std::string& message);

  // Every key that was not asked for is a problem, but one without a value (null), which is a note. `ignored`: paths
  // that may stay unread; a note each.
  void Rest(const std::set<std::string>& ignored);
  // One note with the names of all keys that were not asked for, and why they say nothing.
  void RestSaysNothing(const std::string& why);

 private:
  const Json& keys_;
  std::string path_;
  Findings& findings_;
  std::set<std::string, std::less<>> known_;
};

// A value for a message, cut where it is long.
std::string ValueText(const nlohmann::ordered_json& value);
// The shortest decimal that is read as this double: "1e-05", "0.02", "2.5".
std::string ShortestText(double number);

}  // namespace planwright
