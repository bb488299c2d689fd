import { startVm } from '../src/solana/vm.ts'

/** A process of its own that stops the virtual machine and has nothing else left to do. */
const vm = await startVm()
await vm.stop()
console.log(JSON.stringify('stopped'))
