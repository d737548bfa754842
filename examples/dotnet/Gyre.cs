// Gyre's C interface, <gyre/gyre.h>, by P/Invoke: what this sample uses of it, declared as the header does.
using System;
using System.Runtime.InteropServices;
using System.Text;

namespace Gyre
{
    [StructLayout(LayoutKind.Sequential)]
    public struct GyreText
    {
        public IntPtr Name;
        public IntPtr Text;
        public UIntPtr TextLength;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct GyreOptions
    {
        public UIntPtr StructSize;
        public int Engine;
        public int Device;
        public int Transport;
        public int Wait;
        public uint Workers;
        public uint Block;
        public uint Blocks;
        public uint Slots;
        public uint SlotBytes;
        public uint MaxReplyBytes;
        public uint ActorsPerWorker;
        public uint MaxBuffers;
        public int GridScoped;
        public int Verbose;
        public int Cache;
        public int Isolation;
        public long TimeoutMs;
        public ulong ArenaBytes;
        public ulong RegionBudget;
        public IntPtr KeepProgram;
        public IntPtr PinWorkers;
        public UIntPtr PinWorkerCount;
        public long HeartbeatTimeoutMs;
        public uint RestartTimes;
        public uint Multiprocessors;
        public long RestartWithinMs;
        public IntPtr CudaContext;
        public int Context;
        public int Reserved;
        public long StallAfterMs;
        public ulong SpillBytes;
        public ulong BodyPoolBytes;
        public uint BodyBytes;
        public uint Reserved_2;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct GyreSendOptions
    {
        public UIntPtr StructSize;
        public int Encoding;
        public int WhenFull;
        public long TimeoutNs;
        public long ExpiresAfterNs;
        public uint MaxReplyBytes;
        public uint Reserved;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct GyreTermination
    {
        public UIntPtr StructSize;
        public int WorkerStuck;
        public int Balanced;
        public double UptimeS;
        public double TerminateMs;
        public int SenderStuck;
        public int ReaderStuck;
        public int Unfinished;
        public int BuffersStuck;
    }

    [StructLayout(LayoutKind.Sequential)]
    public struct GyreBufferHandle
    {
        public uint Index;
        public uint Generation;
        public uint Runtime;
        public ushort Element;
        public ushort Reserved;
        public ulong Length;
    }

    /// <summary>The functions, by their names in C. Handles are numbers: 0 is none.</summary>
    public static class Native
    {
        // libgyre.so.0 on Linux: the loader's path, or LD_LIBRARY_PATH, says where it is.
        private const string Library = "libgyre.so.0";

        public const int Ok = 0, EngineCpu = 2, Body = 0, MemoryDevice = 0, Float32 = 9, TextDeviceName = 0;

        [DllImport(Library)] public static extern IntPtr gyre_version();
        [DllImport(Library)] public static extern IntPtr gyre_status_name(int status);
        [DllImport(Library)] public static extern IntPtr gyre_last_error();
        [DllImport(Library)] public static extern int gyre_options_init(ref GyreOptions options, UIntPtr structSize);
        [DllImport(Library)] public static extern int gyre_launch(ulong actors, ref GyreOptions options, out ulong runtime);
        [DllImport(Library)] public static extern int gyre_runtime_text(ulong runtime, int which, byte[] buffer, UIntPtr capacity, out UIntPtr size);
        [DllImport(Library)] public static extern int gyre_terminate(ulong runtime, long timeoutNs, ref GyreTermination report);
        [DllImport(Library)] public static extern int gyre_runtime_release(ulong runtime);
        [DllImport(Library)] public static extern int gyre_schema_parse(GyreText[] files, UIntPtr count, out ulong schema);
        [DllImport(Library)] public static extern int gyre_schema_type_id(ulong schema, byte[] name, out ulong id);
        [DllImport(Library)] public static extern int gyre_schema_release(ulong schema);
        [DllImport(Library)] public static extern int gyre_send_options_init(ref GyreSendOptions options, UIntPtr structSize);
        [DllImport(Library)] public static extern int gyre_ask(ulong runtime, byte[] actor, ulong key, ulong request, byte[] bytes, UIntPtr bytesSize, ref GyreSendOptions options, out ulong call);
        [DllImport(Library)] public static extern int gyre_call_wait(ulong call, long timeoutNs);
        [DllImport(Library)] public static extern int gyre_call_reply(ulong call, out IntPtr body, out UIntPtr bodySize);
        [DllImport(Library)] public static extern int gyre_call_release(ulong call);
        [DllImport(Library)] public static extern int gyre_buffer_create(ulong runtime, int memory, int element, ulong elements, out ulong buffer);
        [DllImport(Library)] public static extern int gyre_buffer_get_handle(ulong buffer, ulong length, out GyreBufferHandle handle);
        [DllImport(Library)] public static extern int gyre_buffer_write(ulong buffer, ulong offset, float[] bytes, ulong size);
        [DllImport(Library)] public static extern int gyre_buffer_read(ulong buffer, ulong offset, float[] bytes, ulong size);
        [DllImport(Library)] public static extern int gyre_buffer_release(ulong buffer);
    }

    /// <summary>What failed, in Gyre's words: the numbers, and what to do.</summary>
    public sealed class GyreException : Exception
    {
        public readonly int Status;

        private GyreException(int status, string text) : base(text) { Status = status; }

        /// <summary>Throws unless the status is 0. To be called on the thread of the call, right after it.</summary>
        public static void Check(int status)
        {
            if (status != Native.Ok) throw new GyreException(status, Marshal.PtrToStringAnsi(Native.gyre_last_error()));
        }
    }

    /// <summary>Text for C: UTF-8 with a 0 at its end.</summary>
    public static class CText
    {
        public static byte[] Of(string text) { return Encoding.UTF8.GetBytes(text + "\0"); }
    }
}
