import type { AssetId } from '../../src/domain/catalog/assets.ts'
import { chainFacts, type EvmChainId, evmChains } from '../../src/domain/catalog/networks.ts'
import { describeChain } from './chain_contract.ts'
import type { AddressCases } from './chain_driver.ts'
import { type EvmDriver, startEvmDriver } from './evm_driver.ts'
import { evmFakes } from './evm_fakes.ts'

const checksummed = '0xd8dA6BF26964aF9D7eEd9e03E53415D37aA96045'

const addresses: AddressCases = {
  valid: [
    { what: 'with its checksum', text: checksummed, canonical: checksummed },
    { what: 'in lowercase', text: checksummed.toLowerCase(), canonical: checksummed },
  ],
  invalid: [
    { what: 'a mistyped letter case', text: '0xD8dA6BF26964aF9D7eEd9e03E53415D37aA96045' },
    { what: 'all in capitals', text: `0x${checksummed.slice(2).toUpperCase()}` },
    { what: 'a capital X', text: `0X${checksummed.slice(2).toLowerCase()}` },
    { what: 'without 0x', text: checksummed.slice(2) },
    { what: 'the zero address', text: `0x${'0'.repeat(40)}` },
    { what: 'a precompile', text: '0x0000000000000000000000000000000000000001' },
    { what: 'the burn address', text: '0x000000000000000000000000000000000000dEaD' },
    { what: 'a transaction hash', text: `0x${'ab'.repeat(32)}` },
    { what: 'a name', text: 'vitalik.eth' },
    { what: 'a Bitcoin address', text: 'bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq' },
  ],
}

function runOn(id: EvmChainId, name: string, assets: readonly [AssetId, ...AssetId[]]) {
  let started: EvmDriver | undefined
  const running = () => {
    if (started === undefined) throw new Error('the driver was started')
    return started
  }
  describeChain({
    name,
    addresses,
    assets,
    fakeDeposits: evmFakes(running),
    async start() {
      started = await startEvmDriver(id)
      return started
    },
  })
}

/** BNB: the same code against a node with another native coin, and tokens of 18 decimals. */
const carried: Readonly<Record<EvmChainId, readonly [AssetId, ...AssetId[]]>> = {
  ETH: ['ETH:ETH', 'USDT:ERC20'],
  BNB: ['BNB:BNB', 'USDT:BEP20'],
}
for (const id of evmChains) runOn(id, chainFacts[id].name.toLowerCase(), carried[id])
