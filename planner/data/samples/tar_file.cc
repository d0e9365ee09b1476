#include "planner/data/samples/tar_file.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>

#include "planner/base/text/stand_in.h"

namespace planwright {
namespace {

constexpr int64_t kMaxExtendedHeader = 1 << 20;

// The text of a header field, up to its first NUL.
std::string_view Field(std::string_view header, size_t offset, size_t size) {
  const std::string_view field = header.substr(offset, size);
  return field.substr(0, field.find('\0'));
}

// A number of octal digits between spaces. nullopt for anything else, GNU's binary sizes included.
std::optional<int64_t> Octal(std::string_view header, size_t offset, size_t size) {
  std::string_view field = Field(header, offset, size);
  field.remove_prefix(std::min(field.find_first_not_of(' '), field.size()));
  field = field.substr(0, field.find(' '));
  if (field.empty() || field.size() > 20) return std::nullopt;
  int64_t value = 0;
  for (char digit : field) {
    if (digit < '0' || digit > '7') return std::nullopt;
    value = value * 8 + (digit - '0');
  }
  return value;
}

std::string NameProblem(const std::string& name) {
  if (name.empty()) return "it has no name";
  if (name[0] == '/') return "its name is absolute";
  for (absl::string_view part : absl::StrSplit(name, '/')) {
    if (part == "..") return "its name leaves the folder";
  }
  return "";
}

// What a pax extended header says about the next member, instead of the fields of that member's header.
struct Extended {
  std::optional<std::string> path;
  std::optional<int64_t> size;
  bool sparse = false;  // what the archive has of the member is a map of its holes, and the rest
};

// Parses records "LENGTH KEY=VALUE\n", where LENGTH counts the whole record. False if they have another form.
bool ReadExtended(const std::string& records, Extended& extended) {
  for (size_t at = 0; at < records.size();) {
    const size_t space = records.find(' ', at);
    uint64_t length = 0;
    if (space == std::string::npos || !absl::SimpleAtoi(records.substr(at, space - at), &length)) return false;
    // LENGTH is compared by subtraction: it can be any 64-bit number, and an addition could overflow.
    if (length <= space - at + 1 || length > records.size() - at || records[at + length - 1] != '\n') return false;
    const std::string record = records.substr(space + 1, at + length - space - 2);
    const size_t equals = record.find('=');
    if (equals == std::string::npos) return false;
    const std::string key = record.substr(0, equals), value = record.substr(equals + 1);
    if (key == "path") extended.path = value;
    if (key.starts_with("GNU.sparse.")) extended.sparse = true;
    if (key == "size") {
      int64_t size = 0;
      if (!absl::SimpleAtoi(value, &size) || size < 0) return false;
      extended.size = size;
    }
    at += length;
  }
  return true;
}

// Where something other than zeros stands from `at` on; the end of the file if nothing does.
absl::StatusOr<int64_t> EndOfZeros(const PlainFile& file, FileWindow& window, int64_t at) {
  constexpr int64_t kPart = 1 << 16;
  while (at < file.bytes()) {
    const absl::StatusOr<std::string_view> part = window.Read(at, std::min(kPart, file.bytes() - at));
    if (!part.ok()) return part.status();
    const size_t other = part->find_first_not_of('\0');
    if (other != std::string_view::npos) return at + static_cast<int64_t>(other);
    at += static_cast<int64_t>(part->size());
  }
  return at;
}

}  // namespace

bool TarChecksumFits(std::string_view header) {
  int64_t sum = 0;
  for (int64_t i = 0; i < kTarBlock; ++i) sum += i >= 148 && i < 156 ? ' ' : static_cast<unsigned char>(header[i]);
  return Octal(header, 148, 8) == sum;
}

int64_t TarHeaderSize(std::string_view header) { return Octal(header, 124, 12).value_or(-1); }

absl::Status WalkTar(const PlainFile& file, FileWindow& window,
                     absl::FunctionRef<absl::Status(const TarMember& member)> each) {
  Extended extended;
  for (int64_t at = 0;;) {
    const auto wrong = [&](auto... what) {
      return absl::InvalidArgumentError(absl::StrCat(file.path(), ": at byte ", at, ": ", what...));
    };
    const int64_t bytes = file.bytes();  // of the archive when it was opened: it must not change during a run
    // A block of zeros ends an archive. Without one the file was cut off, and members may be missing.
    if (at == 0) {
      const absl::StatusOr<std::string_view> begin =
          window.Read(0, std::min<int64_t>(bytes, static_cast<int64_t>(kStandInBytes)));
      if (!begin.ok()) return begin.status();
      if (const std::string other = StandInFor(*begin); !other.empty()) return wrong(other);
    }
    if (bytes - at < kTarBlock) return wrong("the archive ends without its end mark");
    const absl::StatusOr<std::string_view> read_header = window.Read(at, kTarBlock);
    if (!read_header.ok()) return read_header.status();
    const std::string_view header = *read_header;  // until the next read
    if (std::all_of(header.begin(), header.end(), [](char c) { return c == 0; })) {
      const absl::StatusOr<int64_t> zeros = EndOfZeros(file, window, at + kTarBlock);
      if (!zeros.ok()) return zeros.status();
      if (*zeros == bytes) return absl::OkStatus();
      return wrong("the archive ends, but more than zeros follow, at byte ", *zeros,
                   ": archives behind each other are not read; `tar --concatenate` makes one of them");
    }
    if (header.substr(257, 5) != "ustar") return wrong("not a ustar header");
    if (!TarChecksumFits(header)) return wrong("the header's checksum does not fit");
    const char type = header[156];
    // '0' and NUL: a regular file. '5': a folder, which is skipped. 'x', 'g': extended headers of the next and of all
    // members. 'L': the name of the next one, as GNU tar writes it.
    const bool member = type == '0' || type == '\0';
    const bool gnu = header[262] == ' ';  // the place of the prefix has times there
    const std::string_view prefix = gnu ? "" : Field(header, 345, 155);
    std::string name(Field(header, 0, 100));
    if (!prefix.empty()) name = std::string(prefix) + "/" + name;
    std::optional<int64_t> size = Octal(header, 124, 12);
    const int64_t in_header = size.value_or(-1);
    bool sparse = false;
    if (member || type == '5') {
      sparse = extended.sparse;
      if (extended.path) name = *extended.path;
      if (extended.size) size = extended.size;
      extended = {};
    }
    if (!size) return wrong("member ", name, ": its size is not octal");
    const int64_t contents = at + kTarBlock;
    if (*size > bytes - contents) return wrong("member ", name, ": its ", *size, " bytes go beyond the archive");
    if (type == 'x' || type == 'g') {
      if (*size > kMaxExtendedHeader) return wrong("an extended header of ", *size, " bytes");
      const absl::StatusOr<std::string_view> records = window.Read(contents, *size);
      if (!records.ok()) return records.status();
      Extended read;
      if (!ReadExtended(std::string(*records), read)) return wrong("an extended header that is not pax");
      if (type == 'x') {
        extended = read;
      } else if (read.path || read.size || read.sparse) {  // would give all members one name or size
        return wrong("a global header that names members");
      }
    } else if (type == 'L') {
      if (*size > kMaxExtendedHeader) return wrong("a long name of ", *size, " bytes");
      const absl::StatusOr<std::string_view> long_name = window.Read(contents, *size);
      if (!long_name.ok()) return long_name.status();
      extended.path = std::string(long_name->substr(0, long_name->find('\0')));
    } else if (member || type == '5') {
      const std::string problem = NameProblem(name);
      if (!problem.empty()) return wrong("member ", name, ": ", problem);
      if (sparse) return wrong("member ", name, ": a sparse file is not read: write it without the option --sparse");
      if (member) {
        if (absl::Status status = each({name, contents, *size, in_header}); !status.ok()) return status;
      }
    } else {
      return wrong("member ", name, ": type '", std::string(1, type),
                   "' is not read: write plain files, in format ustar, pax or GNU's");
    }
    at = contents + (*size + kTarBlock - 1) / kTarBlock * kTarBlock;
  }
}

}  // namespace planwright
