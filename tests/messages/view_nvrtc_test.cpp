// The views and the generated code compile with NVRTC. No GPU is needed.
// Use: view_nvrtc_test ARCHITECTURES INCLUDE_DIR...   ARCHITECTURES: sm_90,sm_120
// Exit status: 0 as it should be, 1 not, 2 bad usage, 77 no NVRTC here.
#include <dlfcn.h>
#include <nvrtc.h>

#include <cstdio>
#include <sstream>
#include <string>
#include <vector>

namespace {

// Reads and writes each kind of field, as a handler would.
constexpr const char* source = R"(
#include <gyre/messages/vector_add.view.hpp>
#include <tests/messages/kinds.view.hpp>

namespace view = gyre::messages::view;
namespace kinds = gyre::test::view;

__device__ void add(view::VectorAddRequest::Reader in, view::VectorAddResponse::Builder out) {
  const auto a = in.a(), b = in.b();
  auto result = out.init_result(a.size());
  for (uint32_t i = threadIdx.x; i < result.size(); i += blockDim.x) result.set(i, a[i] + b[i]);
  out.set_success(in.operation() == view::Operation::add);
  out.set_error(view::VectorAddResponse::Error::none);
  out.set_processed(a.size());
}

__device__ double every_kind(kinds::Kinds::Reader in, kinds::Kinds::Builder out) {
  out.set_i64_default(in.i64_default());
  out.set_f32_none(in.f32_none());
  out.set_f64_infinite(in.f64_infinite());
  out.set_colour_default(in.colour_default());
  out.set_boolean_default(in.boolean_default());
  out.init_f64s(in.f64s().size()).set(0, in.f64s()[0]);
  out.init_colours(1).set(0, in.colours()[0]);
  out.set_text("text");
  out.init_data(in.data().size()).set(0, in.data_default()[0]);
  out.init_point().set_label(in.point_default().label());
  out.init_tree().init_left().init_children(in.tree().left().children().size())[0].set_value(1);
  out.init_bits(3).set(1, in.bits()[1] || in.bits_default()[0]);
  out.init_voids(in.voids().size());
  out.init_texts(1).init(0, in.texts()[0].size()).set(0, in.texts_default()[2][0]);
  out.init_points(2)[1].set_x(in.points()[1].x() + in.points_default()[0].x());
  out.init_rows(1).init(0, 2).set(1, in.rows()[0][1] + in.rows_default()[0][1]);
  out.init_point_cubes(1).init(0, 1).init(0, 1)[0].set_y(in.point_cubes()[0][0][0].y());
  out.place().view().set_colour(in.place().view().colour());
  const auto place = out.place();
  place.set_line(in.place().line());
  if (in.shape().which() == kinds::Kinds::Shape::Which::box && in.has_text())
    out.shape().init_box().corner().set_radius(in.shape().box().corner().radius());
  out.init_pair().set_second(in.pair().second());
  return in.u8s().data() == nullptr || in.text() == "text" ? 0.0 : in.f64_default();
}

__device__ uint32_t recursion(kinds::Ping::Reader in) { return in.pong().ping().end().lost().rally(); }

extern "C" __global__ void kernel(const void* request, uint32_t bytes, void* reply, uint32_t capacity,
                                  unsigned long long* said) {
  gyre::wire::Message message(request, bytes);
  gyre::wire::Body body(reply, capacity);
  using Request = view::VectorAddRequest;
  using Response = view::VectorAddResponse;
  add(Request::Reader(message.root()),
      Response::Builder(body.init_root(Response::data_words, Response::pointers)));
  said[0] = every_kind(kinds::Kinds::Reader(message.root()),
                       kinds::Kinds::Builder(body.init_root(kinds::Kinds::data_words, kinds::Kinds::pointers)));
  said[0] += recursion(kinds::Ping::Reader(message.root()));
  said[1] = message.failed() ? message.failed_word() : body.full() ? 0 : body.used_bytes();
  said[2] = Request::type_id;
  said[3] = Request::type_name[threadIdx.x];
}
)";

template <class Function>
Function load(void* library, const char* name) {
  return reinterpret_cast<Function>(dlsym(library, name));
}
#define NVRTC(name) const auto name = load<decltype(&::name)>(library, #name)

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  void* const library = dlopen("libnvrtc.so.13", RTLD_NOW);
  if (library == nullptr) {
    std::printf("skipped: %s\n", dlerror());
    return 77;
  }
  NVRTC(nvrtcCreateProgram);
  NVRTC(nvrtcCompileProgram);
  NVRTC(nvrtcGetProgramLogSize);
  NVRTC(nvrtcGetProgramLog);
  NVRTC(nvrtcGetCUBINSize);
  NVRTC(nvrtcDestroyProgram);

  int failures = 0;
  std::istringstream architectures(argv[1]);
  for (std::string architecture; std::getline(architectures, architecture, ',');) {
    std::vector<std::string> options = {"--std=c++20", "--gpu-architecture=" + architecture};
    for (int i = 2; i < argc; ++i) options.push_back(std::string("--include-path=") + argv[i]);
    std::vector<const char*> arguments;
    for (const std::string& option : options) arguments.push_back(option.c_str());

    nvrtcProgram program;
    nvrtcCreateProgram(&program, source, "view_nvrtc_test.cu", 0, nullptr, nullptr);
    const nvrtcResult result = nvrtcCompileProgram(program, int(arguments.size()), arguments.data());
    size_t log_size = 0, cubin_size = 0;
    nvrtcGetProgramLogSize(program, &log_size);
    std::string log(log_size, '\0');
    nvrtcGetProgramLog(program, log.data());
    nvrtcGetCUBINSize(program, &cubin_size);
    const bool ok = result == NVRTC_SUCCESS && log_size <= 1 && cubin_size > 0;  // a warning fails too
    std::printf("%s: %s, cubin of %zu bytes\n%s", architecture.c_str(), ok ? "compiled" : "FAILED",
                cubin_size, log.c_str());
    failures += ok ? 0 : 1;
    nvrtcDestroyProgram(&program);
  }
  return failures == 0 ? 0 : 1;
}
