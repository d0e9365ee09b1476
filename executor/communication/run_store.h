// The store of a run as a c10d::Store, for the code of LibTorch and ours that meets in one.
#pragma once

#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <vector>

#include "planner/wire/rendezvous/store_client.h"

namespace planwright::executor {

// A text as c10d's stores keep it.
std::vector<uint8_t> StoreValue(const std::string& text);

// One connection to a StoreServer (planner/wire/rendezvous/store_server.h). May be used by several threads, but one
// that waits holds up the others: a thread that must not be held up takes a clone, which is another connection.
// Operations are those of c10d's TCPStore, without queues. They throw c10::DistStoreError, in one line and without a
// backtrace, if the store is lost or a key does not come within the timeout.
class RunStore : public c10d::Store {
 public:
  // `patience`: for the store to be reached. `timeout`: of operations; 0: none. Errors of StoreClient::Connect.
  static absl::StatusOr<c10::intrusive_ptr<RunStore>> Connect(const Endpoint& endpoint, const std::string& secret,
                                                              std::chrono::milliseconds patience,
                                                              std::chrono::milliseconds timeout);
  RunStore(std::unique_ptr<StoreClient> client, Endpoint endpoint, std::string secret,
           std::chrono::milliseconds patience, std::chrono::milliseconds timeout);

  // The address of this machine that the connection has: the other ranks can reach it the way they reach the store.
  const std::string& local_address() const { return client_->local_address(); }

  c10::intrusive_ptr<c10d::Store> clone() override;
  using Store::set;
  void set(const std::string& key, const std::vector<uint8_t>& value) override;
  using Store::compareSet;
  std::vector<uint8_t> compareSet(const std::string& key, const std::vector<uint8_t>& expected,
                                  const std::vector<uint8_t>& desired) override;
  std::vector<uint8_t> get(const std::string& key) override;
  int64_t add(const std::string& key, int64_t value) override;
  bool deleteKey(const std::string& key) override;
  bool check(const std::vector<std::string>& keys) override;
  int64_t getNumKeys() override;
  void wait(const std::vector<std::string>& keys) override;
  void wait(const std::vector<std::string>& keys, const std::chrono::milliseconds& timeout) override;
  void append(const std::string& key, const std::vector<uint8_t>& value) override;
  std::vector<std::vector<uint8_t>> multiGet(const std::vector<std::string>& keys) override;
  void multiSet(const std::vector<std::string>& keys, const std::vector<std::vector<uint8_t>>& values) override;
  bool hasExtendedApi() const override { return true; }

 private:
  StoreMessage Ask(StoreOp op, std::vector<std::string> fields, int64_t number = 0);
  StoreMessage Ask(StoreOp op, std::vector<std::string> fields, int64_t number, std::chrono::milliseconds timeout);

  const std::unique_ptr<StoreClient> client_;
  const Endpoint endpoint_;
  const std::string secret_;
  const std::chrono::milliseconds patience_;
};

}  // namespace planwright::executor
