import { startVm } from '../src/solana/vm.ts'

/** A process of its own that starts virtual machines of which some are stuck, stops the one that it was given, and wants to end with 7. */
const [folder, suspiciousMs, firstWordMs, interrupts] = process.argv.slice(2)
process.env.STUCK_FOLDER = folder
const interrupt = new AbortController()
const starting = startVm({
  program: new URL('./stuck_vm_thread.ts', import.meta.url),
  suspiciousMs: Number(suspiciousMs),
  firstWordMs: Number(firstWordMs),
  signal: interrupt.signal,
})
if (interrupts !== undefined) interrupt.abort(new Error('interrupted'))
const told = await starting.then(
  async (vm) => {
    await vm.stop()
    return 'started'
  },
  (error: Error) => error.message,
)
console.log(JSON.stringify(told))
process.exit(7)
