import { type DevnetNetwork, startDevnet } from '../src/index.ts'

/** A process of its own that runs a devnet until it is killed; the tests kill it. */
const [dataDir = '', mining = 'manual', network, bitcoin] = process.argv.slice(2)
const devnet = await startDevnet({
  dataDir,
  mining: mining === 'lively' ? 'lively' : 'manual',
  ...(network !== undefined && { networks: [network as DevnetNetwork] }),
  ...(bitcoin === 'simulated' && { bitcoin }),
})
console.log(JSON.stringify({ processes: devnet.processes, networks: devnet.networks }))
process.on('SIGTERM', async () => {
  await devnet.stop()
  process.exit(0)
})
