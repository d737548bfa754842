// Adds vectors by a grain: on the GPU where there is one, else, or with the argument cpu, on CPU threads.
using System;
using System.Threading.Tasks;
using Gyre;

public static class Program
{
    public static int Main(string[] arguments)
    {
        using (var host = new GyreHost(arguments.Length > 0 && arguments[0] == "cpu"))
        {
            Console.WriteLine("on " + host.DeviceName);
            IVectorAddGrain grain = host.GetGrain(7);
            var tasks = new Task<float[]>[8];
            for (int n = 0; n < tasks.Length; ++n)
            {
                var a = new float[1000 * (n + 1)];
                var b = new float[a.Length];
                for (int i = 0; i < a.Length; ++i)
                {
                    a[i] = i;
                    b[i] = 2 * i;
                }
                tasks[n] = grain.Add(a, b);
            }
            Task.WaitAll(tasks);
            int sums = 0;
            foreach (var task in tasks)
            {
                for (int i = 0; i < task.Result.Length; ++i)
                {
                    if (task.Result[i] != 3 * i) throw new Exception("element " + i + " is " + task.Result[i]);
                    ++sums;
                }
            }
            Console.WriteLine(sums + " sums, all right; the books " + (host.Stop() ? "balance" : "do not balance"));
        }
        return 0;
    }
}
