// The keys of a config.json, one by one. Each key that is asked for counts as known; what is left at the end is
// reported by its path, so that nothing that a stranger wrote is silently ignored.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "planner/exchange/findings.h"
#include "planner/exchange/said_model.h"

namespace planwright {

// One object, and the objects in it. A name is a key of it, or "a.b" of an object under a key; "a.1" is the second
// element of a list, and "/a" a key of the whole file.
class ConfigKeys {
 public:
  using Json = nlohmann::ordered_json;
  using Names = std::vector<std::string>;  // a key and its other names, in the order in which they count

  // `path`: of the object, "" or "text_config". `keys` outlives this.
  // `whole`: the keys of the file, of which this is an object; null: it is the file itself.
  ConfigKeys(const Json& keys, std::string path, Findings& findings, ConfigKeys* whole = nullptr);

  const Json& object() const { return keys_; }
  const std::string& path() const { return path_; }
  std::string PathOf(std::string_view name) const;
  Findings& findings() const { return findings_; }

  // The value under the first of the names that has one, and that name's path; null counts as none, and so does
  // an empty object beside another one. Two names with different values are a problem.
  const Json* Find(const Names& names, std::string* path = nullptr);

  bool Has(const std::string& name);  // also with the value null

  // What a value says of this type; none if it is of another kind, which is a problem at `path`. An integer is at most
  // 2^24.
  std::optional<Said> Integer(const Json& value, const std::string& path, bool or_zero);
  std::optional<Said> Real(const Json& value, const std::string& path, bool or_zero);
  std::optional<Said> Flag(const Json& value, const std::string& path);
  std::optional<Said> Word(const Json& value, const std::string& path);
  // A list of integers from 0.
  std::optional<std::set<int64_t>> List(const Json& value, const std::string& path);

  void Known(const Names& names);
  // All keys of an object: one note with the names of those that were not asked for, and why they say nothing.
  void RestSaysNothing(const std::string& name, const std::string& why);

  void WrongValue(const std::string& name, const Json& value, const std::string& message);

  // Every key that was not asked for is a problem, but one without a value (null), which is a note. `ignored`: paths
  // that may stay unread; a note each.
  void Rest(const std::set<std::string>& ignored);

 private:
  // The object that has the last part of a name, and this part.
  std::pair<ConfigKeys*, std::string> PlaceOf(const std::string& name);
  // `list`: what is under the key may be one.
  ConfigKeys& Inner(const std::string& key, bool list = false);

  const Json& keys_;
  std::string path_;
  Findings& findings_;
  ConfigKeys* const whole_;
  std::set<std::string, std::less<>> known_;
  std::map<std::string, std::unique_ptr<ConfigKeys>> inner_;
  std::map<std::string, std::unique_ptr<Json>> lists_;  // those under a key, as objects: {"0": ...}
  bool rest_says_nothing_ = false;
};

// Keys that every config of transformers may have, and that say nothing of a model's numbers.
const ConfigKeys::Names& CommonKeys();

// Whether a part of a name is the number of an element of a list.
bool IsIndex(std::string_view name);

// A value for a message, cut where it is long.
std::string ValueText(const nlohmann::ordered_json& value);
// The shortest decimal that is read as this double: "1e-05", "0.02", "2.5".
std::string ShortestText(double number);

}  // namespace planwright
