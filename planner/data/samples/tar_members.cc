#include "planner/data/samples/tar_members.h"

#include <absl/strings/str_cat.h>

#include <algorithm>

namespace planwright {
namespace {

constexpr size_t kMostMembers = 4'000'000;  // of all tars that are kept: about 300 MB

}  // namespace

absl::StatusOr<TarMembers> TarMembers::Scan(const std::string& path) {
  const absl::StatusOr<PlainFile> file = PlainFile::Open(path);
  if (!file.ok()) return file.status();
  TarMembers members;
  members.bytes_ = file->bytes();
  FileWindow window(*file);
  const absl::Status walked = WalkTar(*file, window, [&](const TarMember& member) {
    members.members_.push_back(
        {members.names_.size(), static_cast<uint32_t>(member.name.size()), member.offset, member.bytes});
    members.names_ += member.name;
    return absl::OkStatus();
  });
  if (!walked.ok()) return walked;
  std::sort(members.members_.begin(), members.members_.end(),
            [&](const Entry& a, const Entry& b) { return members.NameOf(a) < members.NameOf(b); });
  return members;
}

absl::StatusOr<TarMember> TarMembers::Find(std::string_view name) const {
  const auto found = std::lower_bound(members_.begin(), members_.end(), name,
                                      [&](const Entry& entry, std::string_view to) { return NameOf(entry) < to; });
  if (found == members_.end() || NameOf(*found) != name)
    return absl::NotFoundError(absl::StrCat("it has no member ", std::string(name)));
  const auto next = found + 1;
  if (next != members_.end() && NameOf(*next) == name)
    return absl::InvalidArgumentError(absl::StrCat("it has several members ", std::string(name)));
  return TarMember{std::string(name), found->offset, found->bytes};
}

absl::StatusOr<std::shared_ptr<const TarMembers>> TarMembersCache::Get(const std::string& path) {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_path_.find(path);
    if (found != by_path_.end()) {
      used_.splice(used_.begin(), used_, found->second);
      entry = found->second->second;
    } else {
      entry = std::make_shared<Entry>();
      used_.emplace_front(path, entry);
      by_path_[path] = used_.begin();
    }
  }
  // Others who ask for this tar wait for the scan; those who ask for another one do not.
  std::call_once(entry->once, [&] {
    absl::StatusOr<TarMembers> scanned = TarMembers::Scan(path);
    if (!scanned.ok()) {
      entry->scanned = scanned.status();
      return;
    }
    auto members = std::make_shared<const TarMembers>(*std::move(scanned));
    entry->scanned = members;
    const std::lock_guard lock(mutex_);
    const auto found = by_path_.find(path);
    if (found == by_path_.end() || found->second->second != entry) return;  // forgotten meanwhile
    entry->counted = members->size();
    members_ += entry->counted;
    while (members_ > kMostMembers && used_.size() > 1) {
      members_ -= used_.back().second->counted;
      by_path_.erase(used_.back().first);
      used_.pop_back();
    }
  });
  return entry->scanned;
}

}  // namespace planwright
