// A grain-shaped class over a GPU actor: an interface of methods, an identity, awaited calls. What a caller sees says
// nothing of rings, slots or handles.
using System;
using System.Runtime.InteropServices;
using System.Threading.Tasks;

namespace Gyre
{
    public interface IVectorAddGrain
    {
        /// <summary>The sum, element by element; of vectors of any one length.</summary>
        Task<float[]> Add(float[] a, float[] b);
    }

    /// <summary>The workers, for the life of the program: what a silo is to grains.</summary>
    public sealed class GyreHost : IDisposable
    {
        internal readonly ulong Runtime;
        internal readonly ulong AddRequest;

        public GyreHost(bool onCpu)
        {
            ulong schema;
            GyreException.Check(Native.gyre_schema_parse(null, UIntPtr.Zero, out schema));
            GyreException.Check(Native.gyre_schema_type_id(schema, CText.Of("VectorAddRequest"), out AddRequest));
            GyreException.Check(Native.gyre_schema_release(schema));
            var options = new GyreOptions();
            GyreException.Check(Native.gyre_options_init(ref options, (UIntPtr)Marshal.SizeOf(typeof(GyreOptions))));
            if (onCpu) options.Engine = Native.EngineCpu;
            GyreException.Check(Native.gyre_launch(0, ref options, out Runtime));
        }

        public IVectorAddGrain GetGrain(ulong key) { return new VectorAddGrain(this, key); }

        public string DeviceName
        {
            get
            {
                var buffer = new byte[256];
                UIntPtr size;
                GyreException.Check(Native.gyre_runtime_text(Runtime, Native.TextDeviceName, buffer, (UIntPtr)256, out size));
                return System.Text.Encoding.UTF8.GetString(buffer, 0, (int)size);
            }
        }

        /// <summary>Ends the workers; true if every message had its outcome.</summary>
        public bool Stop()
        {
            var report = new GyreTermination { StructSize = (UIntPtr)Marshal.SizeOf(typeof(GyreTermination)) };
            GyreException.Check(Native.gyre_terminate(Runtime, -1, ref report));
            return report.Balanced != 0;
        }

        public void Dispose() { Native.gyre_runtime_release(Runtime); }
    }

    internal sealed class VectorAddGrain : IVectorAddGrain
    {
        private static readonly byte[] Actor = CText.Of("gyre::actors::VectorAdd");
        private readonly GyreHost host;
        private readonly ulong key;

        internal VectorAddGrain(GyreHost host, ulong key)
        {
            this.host = host;
            this.key = key;
        }

        public Task<float[]> Add(float[] a, float[] b)
        {
            if (a.Length != b.Length) throw new ArgumentException("the vectors have " + a.Length + " and " + b.Length + " elements");
            return Task.Run(() => AddInBuffers(a, b));
        }

        // The vectors go in buffers, the message names them: 25 floats or 25 million.
        private float[] AddInBuffers(float[] a, float[] b)
        {
            ulong x = 0, y = 0, call = 0;
            try
            {
                x = BufferOf(a);
                y = BufferOf(b);
                var request = Request(a.Length, HandleOf(x), HandleOf(y));
                var options = new GyreSendOptions();
                GyreException.Check(Native.gyre_send_options_init(ref options, (UIntPtr)Marshal.SizeOf(typeof(GyreSendOptions))));
                GyreException.Check(Native.gyre_ask(host.Runtime, Actor, key, host.AddRequest, request,
                                                    (UIntPtr)request.Length, ref options, out call));
                GyreException.Check(Native.gyre_call_wait(call, -1));
                IntPtr body;
                UIntPtr size;
                GyreException.Check(Native.gyre_call_reply(call, out body, out size));
                var sum = new float[a.Length];
                GyreException.Check(Native.gyre_buffer_read(x, 0, sum, 4 * (ulong)sum.Length));
                return sum;
            }
            finally
            {
                if (call != 0) Native.gyre_call_release(call);
                if (y != 0) Native.gyre_buffer_release(y);
                if (x != 0) Native.gyre_buffer_release(x);
            }
        }

        private ulong BufferOf(float[] elements)
        {
            ulong buffer;
            GyreException.Check(Native.gyre_buffer_create(host.Runtime, Native.MemoryDevice, Native.Float32,
                                                          (ulong)elements.Length, out buffer));
            try
            {
                GyreException.Check(Native.gyre_buffer_write(buffer, 0, elements, 4 * (ulong)elements.Length));
            }
            catch
            {
                Native.gyre_buffer_release(buffer);
                throw;
            }
            return buffer;
        }

        private static byte[] HandleOf(ulong buffer)
        {
            GyreBufferHandle handle;
            GyreException.Check(Native.gyre_buffer_get_handle(buffer, 0, out handle));
            var bytes = new byte[24];
            BitConverter.GetBytes(handle.Index).CopyTo(bytes, 0);
            BitConverter.GetBytes(handle.Generation).CopyTo(bytes, 4);
            BitConverter.GetBytes(handle.Runtime).CopyTo(bytes, 8);
            BitConverter.GetBytes(handle.Element).CopyTo(bytes, 12);
            BitConverter.GetBytes(handle.Length).CopyTo(bytes, 16);
            return bytes;
        }

        // A VectorAddRequest (messages/vector_add.capnp) word by word; a program with a Cap'n Proto library for .NET
        // lets that build it. Word 0: the root: 2 words of data (operation, length) and 5 pointers; the result goes
        // where a is.
        private static byte[] Request(int length, byte[] x, byte[] y)
        {
            var words = new ulong[17];
            words[0] = Struct(0, 2, 5);
            words[1] = 0;              // operation: add
            words[2] = (ulong)length;  // 3 and 4, the lists a and b: null
            words[5] = Struct(8 - 6, 3, 0);
            words[6] = Struct(11 - 7, 3, 0);
            words[7] = Struct(14 - 8, 3, 0);
            var bytes = new byte[8 * words.Length];
            Buffer.BlockCopy(words, 0, bytes, 0, bytes.Length);
            x.CopyTo(bytes, 8 * 8);
            y.CopyTo(bytes, 8 * 11);
            x.CopyTo(bytes, 8 * 14);
            return bytes;
        }

        // A pointer to a struct `offset` words behind it.
        private static ulong Struct(int offset, int dataWords, int pointers)
        {
            return (ulong)(uint)(offset << 2) | (ulong)dataWords << 32 | (ulong)pointers << 48;
        }
    }
}
