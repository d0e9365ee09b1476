// The options of commands as rows. A row says how the option is written, which member of the command's options it
// fills, what may be given, and what it is for: parsing, its errors, helps, man pages and completion follow from it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace planwright {

// The words and options of a command, as they were given.
struct Arguments {
  std::vector<std::string> words;            // in order
  std::map<std::string, std::string> given;  // by long name; a switch has an empty value

  bool has(const std::string& name) const { return given.contains(name); }
};

// What the rows of a command fill. The options of a command are a struct that begins with this one; commands that have
// options in common begin with one struct.
struct CommandOptions : Arguments {
  bool json = false;  // all commands have --json
};

// The place of a part of a member: At(&LaunchOptions::run, &RunOptions::steps).
template <typename Options, typename Member, typename Value>
auto At(Member Options::*member, Value Member::*part) {
  return [=](CommandOptions& options) -> Value& { return static_cast<Options&>(options).*member.*part; };
}

// Whole numbers from `least` to `most`.
struct WholeNumbers {
  int64_t least = 0, most = 0;
  absl::StatusOr<int64_t> operator()(const std::string& name, const std::string& text) const;
};

// Text as it is.
struct AnyText {
  absl::StatusOr<std::string> operator()(const std::string& name, const std::string& text) const { return text; }
};

// A line for a shell, in the folder of the sources, and what it does.
struct CommandExample {
  std::string command, does;
};

// Text that is not empty: the name of `what`, such as "a file".
struct NameOf {
  std::string_view what;
  absl::StatusOr<std::string> operator()(const std::string& name, const std::string& text) const;
};

struct Option {
  // `form`: "-o, --output FILE" or "--json", as helps print it; without a value it is a switch.
  // `place`: a member of the command's options, or At(...): bool of a switch, else a string or what `read` returns, or
  // an std::optional of it.
  // `read`: an absl::StatusOr of the value, from the option's name, as most people write it, and the text. Its message
  // is for the user.
  template <typename Place, typename Read = AnyText>
  Option(std::string_view form, Place place, std::string help, Read read = {}) : Option(form, std::move(help)) {
    if constexpr (std::is_member_object_pointer_v<Place>) {
      Fill(PlaceOf(place), std::move(read));
    } else {
      Fill(std::move(place), std::move(read));
    }
  }
  // One that fills nothing.
  Option(std::string_view form, std::string help);

  // Its value is a file or folder that the command writes.
  Option Writes() &&;
  // A command that has it, for helps and man pages.
  Option With(CommandExample shown) &&;

  std::string text() const;  // "-o, --output FILE"

  std::string name;        // "--output"
  std::string short_name;  // "-o", or empty
  std::string value;       // "FILE"; empty: a switch
  std::string help;
  bool writes = false;
  std::optional<CommandExample> example;
  std::function<absl::Status(const std::string& text, CommandOptions& options)> fill;

 private:
  template <typename Options, typename Value>
  static auto PlaceOf(Value Options::*member) {
    return [=](CommandOptions& options) -> Value& { return static_cast<Options&>(options).*member; };
  }
  template <typename Place, typename Read>
  void Fill(Place place, Read read) {
    if constexpr (std::is_same_v<std::invoke_result_t<Place, CommandOptions&>, bool&>) {
      fill = [place](const std::string& text, CommandOptions& options) {
        place(options) = true;
        return absl::OkStatus();
      };
    } else {
      fill = [name = short_name.empty() ? name : short_name, place, read](const std::string& text,
                                                                          CommandOptions& options) {
        auto value = read(name, text);
        if (value.ok()) place(options) = *std::move(value);
        return value.status();
      };
    }
  }
};

// Of every command, with what it prints.
Option JsonOption(std::string help);

}  // namespace planwright
