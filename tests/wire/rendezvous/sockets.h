// A store for tests, and its clients.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "planner/wire/connection/proof.h"
#include "planner/wire/connection/socket_address.h"
#include "planner/wire/rendezvous/store_client.h"
#include "planner/wire/rendezvous/store_protocol.h"
#include "planner/wire/rendezvous/store_server.h"
#include "tests/support/eventually.h"
#include "tests/wire/connection/stranger.h"

namespace planwright::testing {

inline std::unique_ptr<StoreServer> StartServer(const std::string& secret = "the secret", int port = 0) {
  absl::StatusOr<std::unique_ptr<StoreServer>> server = StoreServer::Start("127.0.0.1", port, secret);
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

inline Endpoint EndpointOf(const StoreServer& server) { return {server.address(), {server.address()}, server.port()}; }

inline std::unique_ptr<StoreClient> ConnectTo(const StoreServer& server, const std::string& secret = "the secret") {
  absl::StatusOr<std::unique_ptr<StoreClient>> client =
      StoreClient::Connect(EndpointOf(server), secret, std::chrono::milliseconds(kPatience));
  EXPECT_TRUE(client.ok()) << client.status();
  return *std::move(client);
}

inline absl::StatusOr<StoreMessage> Ask(StoreClient& client, StoreOp op, std::vector<std::string> fields,
                                        int64_t number = 0, std::chrono::milliseconds timeout = kPatience) {
  return client.Ask({static_cast<uint8_t>(op), number, std::move(fields)}, timeout);
}

// What the store holds, as one client sees it: the value of a key, or "(none)".
inline std::string ValueOf(StoreClient& client, const std::string& key) {
  const absl::StatusOr<StoreMessage> there = Ask(client, StoreOp::kCheck, {key});
  if (!there.ok() || there->number == 0) return there.ok() ? "(none)" : std::string(there.status().message());
  return Ask(client, StoreOp::kGet, {key})->fields.at(0);
}

}  // namespace planwright::testing
