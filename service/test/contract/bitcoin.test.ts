import { createHash } from 'node:crypto'
import { type BitcoinDriver, backings, programOf, scriptOf, startBitcoinDriver } from './bitcoin_driver.ts'
import { describeChain } from './chain_contract.ts'
import type { AddressCases, ChainDriver, FakeDeposit } from './chain_driver.ts'

for (const backing of backings) {
  describeChain({
    name: backing === 'bitcoind' ? 'bitcoin' : 'bitcoin, simulated,',
    addresses: addresses(),
    assets: ['BTC:BTC'],
    fakeDeposits: fakeDeposits(),
    start: () => startBitcoinDriver(backing),
  })
}

/** One key, one script and one point of the BIP-173 and BIP-350 examples, spelt for regtest. */
function addresses(): AddressCases {
  const same = (what: string, text: string) => ({ what, text, canonical: text })
  const witnessKey = 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080'
  return {
    valid: [
      same('legacy', 'mrCDrCybB6J1vRfbwM5hemdJz73FwDBC8r'),
      same('script hash', '2N3vVYSK5XRgVSGWy21PnsRmBUywSQNdCsf'),
      same('segwit key', witnessKey),
      same('segwit script', 'bcrt1qrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qzf4jry'),
      same('taproot', 'bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqc8gma6'),
      { what: 'bech32 in capitals, as in QR codes', text: witnessKey.toUpperCase(), canonical: witnessKey },
    ],
    invalid: [
      { what: 'bech32 of mixed case', text: witnessKey.replace('xtdg', 'XTDG') },
      { what: 'bech32 with its prefix alone in capitals', text: witnessKey.replace('bcrt', 'BCRT') },
      { what: 'a legacy address in lower case', text: 'mrcdrcybb6j1vrfbwm5hemdjz73fwdbc8r' },
      { what: 'one letter changed', text: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt08q' },
      { what: 'legacy of mainnet', text: '1BgGZ9tcN4rm9KBzDn7KprQz87SZ26SAMH' },
      { what: 'segwit of mainnet', text: 'bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4' },
      { what: 'segwit of testnet', text: 'tb1qw508d6qejxtdg4y5r3zarvary0c5xw7kxpjzsx' },
      { what: 'pay-to-anchor, which anyone may spend', text: 'bcrt1pfeesnyr2tx' },
      {
        what: 'taproot of no point on the curve',
        text: 'bcrt1plllllllllllllllllllllllllllllllllllllllllllllllllllse0lp4e',
      },
      {
        what: 'an unknown witness version',
        text: 'bcrt1zrp33g0q5c5txsp9arysrx4k6zdkfs4nce4xj0gdcccefvpysxf3qqrv54n',
      },
      {
        what: 'version 0 with the checksum of version 1',
        text: 'bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7k35mrzd',
      },
      {
        what: 'version 1 with the checksum of version 0',
        text: 'bcrt1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqdmchcc',
      },
      { what: 'a payment link', text: `bitcoin:${witnessKey}` },
      { what: 'an Ethereum address', text: '0x52908400098527886E0F7030069857D2E4169EE7' },
    ],
  }
}

function fakeDeposits(): readonly FakeDeposit[] {
  const satoshi = 50_000n
  const fake = (
    what: string,
    make: (driver: BitcoinDriver, to: string) => Promise<{ txHash: string }>,
  ): FakeDeposit => ({
    what,
    shows: 'nothing',
    make: (driver, to) => make(asBitcoin(driver), to),
  })
  return [
    fake('a coinbase, which its block takes with it', async ({ rpc }, to) => {
      const [hash] = await rpc<string[]>('generatetoaddress', [1, to])
      const { tx } = await rpc<{ tx: string[] }>('getblock', [hash])
      return { txHash: tx[0] ?? '' }
    }),
    fake('our script inside a data output', (driver, to) => {
      const script = scriptOf(to)
      return sendScript(driver, Uint8Array.from([0x6a, script.length, ...script]), 0n)
    }),
    fake('our address as text inside a data output', (driver, to) => {
      const text = Buffer.from(to)
      return sendScript(driver, Uint8Array.from([0x6a, text.length, ...text]), 0n)
    }),
    fake('an output of nothing', (driver, to) => mineScript(driver, scriptOf(to), 0n)),
    fake('our key under an unknown witness version', (driver, to) =>
      mineScript(driver, Uint8Array.from([0x52, 20, ...programOf(to)]), satoshi),
    ),
    fake('our key in twenty bytes where taproot has thirty-two', (driver, to) =>
      mineScript(driver, Uint8Array.from([0x51, 20, ...programOf(to)]), satoshi),
    ),
    fake('our script with an instruction behind it', (driver, to) =>
      mineScript(driver, Uint8Array.from([...scriptOf(to), 0x61]), satoshi),
    ),
    fake('our key as a legacy address, which we did not give out', (driver, to) =>
      sendScript(driver, Uint8Array.from([0x76, 0xa9, 20, ...programOf(to), 0x88, 0xac]), satoshi),
    ),
    fake('our script wrapped into a script hash', (driver, to) =>
      sendScript(driver, Uint8Array.from([0xa9, 20, ...hash160(scriptOf(to)), 0x87]), satoshi),
    ),
  ]
}

function hash160(bytes: Uint8Array): Uint8Array {
  return createHash('ripemd160').update(createHash('sha256').update(bytes).digest()).digest()
}

async function sendScript({ build, rpc }: BitcoinDriver, script: Uint8Array, satoshi: bigint) {
  return { txHash: await rpc<string>('sendrawtransaction', [await build([{ script, satoshi }])]) }
}

/** Nodes do not relay such outputs; a miner may take them all the same. */
async function mineScript(
  { build, rpc, outsideAddress }: BitcoinDriver,
  script: Uint8Array,
  satoshi: bigint,
) {
  const hex = await build([{ script, satoshi }])
  const { txid } = await rpc<{ txid: string }>('decoderawtransaction', [hex])
  await rpc('generateblock', [await outsideAddress(), [hex]])
  return { txHash: txid }
}

function asBitcoin(driver: ChainDriver): BitcoinDriver {
  if (!('build' in driver)) throw new Error('the driver of this file')
  return driver as BitcoinDriver
}
