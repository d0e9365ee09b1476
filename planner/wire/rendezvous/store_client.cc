#include "planner/wire/rendezvous/store_client.h"

#include <poll.h>
#include <sys/socket.h>

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "planner/wire/connection/socket_address.h"

namespace planwright {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// For the answer to a kCancel: after this the store counts as lost.
constexpr std::chrono::seconds kCancelPatience{10};

std::string Seconds(milliseconds time) { return absl::StrCat(static_cast<double>(time.count()) / 1000, " s"); }

}  // namespace

StoreClient::StoreClient(Endpoint endpoint, ByteStream stream)
    : endpoint_(std::move(endpoint)), stream_(std::move(stream)),
      local_address_(SocketAddress::OfThisEnd(stream_.fd()).address()) {}

absl::StatusOr<std::unique_ptr<StoreClient>> StoreClient::Connect(const Endpoint& endpoint, const std::string& secret,
                                                                  milliseconds patience) {
  absl::StatusOr<ByteStream> stream = ConnectProven(endpoint, kStorePurpose, secret, patience);
  if (!stream.ok()) return stream.status();
  return std::unique_ptr<StoreClient>(new StoreClient(endpoint, *std::move(stream)));
}

absl::StatusOr<StoreMessage> StoreClient::ReceiveReply(Deadline deadline) {
  for (;;) {
    absl::StatusOr<std::optional<StoreMessage>> reply = TakeFrame(stream_.in());
    if (!reply.ok()) return reply.status();
    if (*reply) return **std::move(reply);
    if (absl::Status ready = WaitForSocket(stream_.fd(), POLLIN, deadline); !ready.ok()) return ready;
    if (absl::Status received = stream_.Receive(kBytesOfATurn); !received.ok()) return received;
  }
}

absl::Status StoreClient::Break(const absl::Status& why) {
  broken_ = absl::UnavailableError(absl::StrCat("the store at ", endpoint_.text(), " is lost: ", why.message()));
  shutdown(stream_.fd(), SHUT_RDWR);
  return broken_;
}

absl::StatusOr<StoreMessage> StoreClient::Ask(const StoreMessage& request, milliseconds timeout) {
  const std::lock_guard lock(mutex_);
  if (!broken_.ok()) return broken_;
  const absl::StatusOr<std::string> frame = FrameOf(request);
  if (!frame.ok()) return frame.status();
  const Clock::time_point deadline = Clock::now() + timeout;
  if (absl::Status sent = SendAll(stream_, *frame, deadline); !sent.ok()) return Break(sent);
  absl::StatusOr<StoreMessage> reply = ReceiveReply(deadline);
  const bool waits =
      request.kind == static_cast<uint8_t>(StoreOp::kGet) || request.kind == static_cast<uint8_t>(StoreOp::kWait);
  if (absl::IsDeadlineExceeded(reply.status()) && waits) {
    const Clock::time_point soon = Clock::now() + kCancelPatience;
    const std::string cancel = *FrameOf({static_cast<uint8_t>(StoreOp::kCancel), 0, {}});
    if (absl::Status sent = SendAll(stream_, cancel, soon); !sent.ok()) return Break(sent);
    reply = ReceiveReply(soon);  // the keys may have come at the last moment
  }
  if (!reply.ok()) return Break(reply.status());
  switch (static_cast<StoreReply>(reply->kind)) {
    case StoreReply::kDone: return reply;
    case StoreReply::kCancelled: {
      const std::vector<std::string>& keys = request.fields;
      return absl::DeadlineExceededError(absl::StrCat(
          "waited ", Seconds(timeout), " at the store ", endpoint_.text(), " for '", keys.empty() ? "" : keys[0], "'",
          keys.size() > 1 ? absl::StrCat(" or one of ", keys.size() - 1, " other keys") : ""));
    }
    case StoreReply::kRefused:
      return absl::FailedPreconditionError(absl::StrCat(
          "the store at ", endpoint_.text(), " refuses a request: ", reply->fields.empty() ? "" : reply->fields[0]));
  }
  return Break(absl::InvalidArgumentError("it does not follow the protocol"));
}

}  // namespace planwright
