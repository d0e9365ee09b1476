#include "executor/communication/run_store.h"

#include <utility>

#include "executor/communication/failure.h"

namespace planwright::executor {
namespace {

std::string Text(const std::vector<uint8_t>& bytes) { return {bytes.begin(), bytes.end()}; }

// Without the line of the source and the backtrace, which say nothing about a store. One that answers in time that a
// key is not there yet is not lost.
[[noreturn]] void Throw(const absl::Status& status) {
  const bool late = absl::IsDeadlineExceeded(status);
  throw CommunicationError(late ? FailureKind::kTimeOut : FailureKind::kStoreLost, std::string(status.message()));
}

// A reply with another number of fields comes from no server of ours.
void CheckFields(const StoreMessage& reply, size_t fields) {
  if (reply.fields.size() != fields) Throw(absl::InternalError("the store gave a reply to another question"));
}

}  // namespace

std::vector<uint8_t> StoreValue(const std::string& text) { return {text.begin(), text.end()}; }

absl::StatusOr<c10::intrusive_ptr<RunStore>> RunStore::Connect(const Endpoint& endpoint, const std::string& secret,
                                                               std::chrono::milliseconds patience,
                                                               std::chrono::milliseconds timeout) {
  absl::StatusOr<std::unique_ptr<StoreClient>> client = StoreClient::Connect(endpoint, secret, patience);
  if (!client.ok()) return client.status();
  return c10::make_intrusive<RunStore>(*std::move(client), endpoint, secret, patience, timeout);
}

RunStore::RunStore(std::unique_ptr<StoreClient> client, Endpoint endpoint, std::string secret,
                   std::chrono::milliseconds patience, std::chrono::milliseconds timeout)
    : Store(timeout), client_(std::move(client)), endpoint_(std::move(endpoint)), secret_(std::move(secret)),
      patience_(patience) {}

StoreMessage RunStore::Ask(StoreOp op, std::vector<std::string> fields, int64_t number) {
  return Ask(op, std::move(fields), number, getTimeout());
}

StoreMessage RunStore::Ask(StoreOp op, std::vector<std::string> fields, int64_t number,
                           std::chrono::milliseconds timeout) {
  constexpr std::chrono::hours kForEver(24 * 365 * 100);
  absl::StatusOr<StoreMessage> reply =
      client_->Ask({static_cast<uint8_t>(op), number, std::move(fields)}, timeout == kNoTimeout ? kForEver : timeout);
  if (!reply.ok()) Throw(reply.status());
  return *std::move(reply);
}

c10::intrusive_ptr<c10d::Store> RunStore::clone() {
  absl::StatusOr<c10::intrusive_ptr<RunStore>> other = Connect(endpoint_, secret_, patience_, getTimeout());
  if (!other.ok()) Throw(other.status());
  return *std::move(other);
}

void RunStore::set(const std::string& key, const std::vector<uint8_t>& value) {
  Ask(StoreOp::kSet, {key, Text(value)});
}

std::vector<uint8_t> RunStore::compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                          const std::vector<uint8_t>& desired) {
  const StoreMessage reply = Ask(StoreOp::kCompareSet, {key, Text(expected), Text(desired)});
  CheckFields(reply, 1);
  return StoreValue(reply.fields[0]);
}

std::vector<uint8_t> RunStore::get(const std::string& key) {
  const StoreMessage reply = Ask(StoreOp::kGet, {key});
  CheckFields(reply, 1);
  return StoreValue(reply.fields[0]);
}

int64_t RunStore::add(const std::string& key, int64_t value) { return Ask(StoreOp::kAdd, {key}, value).number; }
bool RunStore::deleteKey(const std::string& key) { return Ask(StoreOp::kDelete, {key}).number == 1; }
bool RunStore::check(const std::vector<std::string>& keys) { return Ask(StoreOp::kCheck, keys).number == 1; }
int64_t RunStore::getNumKeys() { return Ask(StoreOp::kCount, {}).number; }
void RunStore::wait(const std::vector<std::string>& keys) { Ask(StoreOp::kWait, keys); }
void RunStore::wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) {
  Ask(StoreOp::kWait, keys, 0, timeout);
}

void RunStore::append(const std::string& key, const std::vector<uint8_t>& value) {
  Ask(StoreOp::kAppend, {key, Text(value)});
}

std::vector<std::vector<uint8_t>> RunStore::multiGet(const std::vector<std::string>& keys) {
  const StoreMessage reply = Ask(StoreOp::kGet, keys);
  CheckFields(reply, keys.size());
  std::vector<std::vector<uint8_t>> values;
  for (const std::string& value : reply.fields) values.push_back(StoreValue(value));
  return values;
}

void RunStore::multiSet(const std::vector<std::string>& keys, const std::vector<std::vector<uint8_t>>& values) {
  TORCH_CHECK(keys.size() == values.size(), keys.size(), " keys with ", values.size(), " values");
  std::vector<std::string> fields;
  for (size_t i = 0; i < keys.size(); ++i) {
    fields.push_back(keys[i]);
    fields.push_back(Text(values[i]));
  }
  Ask(StoreOp::kSet, std::move(fields));
}

}  // namespace planwright::executor
