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
  const auto a = in.getA(), b = in.getB();
  auto result = out.initResult(a.size());
  for (uint32_t i = threadIdx.x; i < result.size(); i += blockDim.x) result.set(i, a[i] + b[i]);
  out.setSuccess(in.getOperation() == view::Operation::ADD);
  out.setError(view::VectorAddResponse::Error::NONE);
  out.setProcessed(a.size());
}

__device__ double every_kind(kinds::Kinds::Reader in, kinds::Kinds::Builder out) {
  out.setI64Default(in.getI64Default());
  out.setF32None(in.getF32None());
  out.setF64Infinite(in.getF64Infinite());
  out.setColourDefault(in.getColourDefault());
  out.setBooleanDefault(in.getBooleanDefault());
  out.initF64s(in.getF64s().size()).set(0, in.getF64s()[0]);
  out.initColours(1).set(0, in.getColours()[0]);
  out.setText("text");
  out.initData(in.getData().size()).set(0, in.getDataDefault()[0]);
  out.initPoint().setLabel(in.getPointDefault().getLabel());
  out.initTree().initLeft().initChildren(in.getTree().getLeft().getChildren().size())[0].setValue(1);
  out.initBits(3).set(1, in.getBits()[1] || in.getBitsDefault()[0]);
  out.initVoids(in.getVoids().size());
  out.initTexts(1).init(0, in.getTexts()[0].size()).set(0, in.getTextsDefault()[2][0]);
  out.initPoints(2)[1].setX(in.getPoints()[1].getX() + in.getPointsDefault()[0].getX());
  out.initRows(1).init(0, 2).set(1, in.getRows()[0][1] + in.getRowsDefault()[0][1]);
  out.initPointCubes(1).init(0, 1).init(0, 1)[0].setY(in.getPointCubes()[0][0][0].getY());
  out.getPlace().getView().setColour(in.getPlace().getView().getColour());
  const auto place = out.getPlace();
  place.setLine(in.getPlace().getLine());
  if (in.getShape().which() == kinds::Kinds::Shape::BOX && in.hasText())
    out.getShape().initBox().getCorner().setRadius(in.getShape().getBox().getCorner().getRadius());
  out.initPair().setSecond(in.getPair().getSecond());
  return in.getU8s().data() == nullptr || in.getText() == "text" ? 0.0 : in.getF64Default();
}

__device__ uint32_t recursion(kinds::Ping::Reader in) { return in.getPong().getPing().getEnd().getLost().getRally(); }

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
