// Gloo's thread for the sockets of this process.
#pragma once

#include <memory>
#include <string>

namespace gloo::transport {
class Device;
}

namespace planwright::executor {

// The device on which all communicators of this process with the same `address` (of this machine) meet: each device has
// a thread, which wakes up a hundred times a second even where nothing arrives. May be called from any thread. Throws
// what Gloo throws for an address that is not of this machine.
std::shared_ptr<gloo::transport::Device> GlooDeviceAt(const std::string& address);

}  // namespace planwright::executor
