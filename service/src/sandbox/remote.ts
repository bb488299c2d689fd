/** A hand on a running sandbox over HTTP (docs/api.md, The sandbox), for the demo and the functional tests. */
export type SandboxRemote = {
  /** Sends a real transaction; without an amount, what the order asks. Gives its hash. */
  pay(orderId: string, amount?: number | string): Promise<string>
  mine(network: string, blocks: number): Promise<void>
  reorg(network: string, depth: number): Promise<void>
  replace(txHash: string, to?: string): Promise<string>
  setPrice(code: string, usd: number | string): Promise<void>
  changePrice(code: string, percent: number | string): Promise<void>
  advanceClock(seconds: number): Promise<void>
  freshAddress(network: string): Promise<string>
  balance(network: string, address: string, currency?: string): Promise<number>
}

export function sandboxRemote(baseUrl: string): SandboxRemote {
  const call = async (path: string, body?: object): Promise<Record<string, unknown>> => {
    const response = await fetch(`${baseUrl}/sandbox${path}`, {
      ...(body && {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: toJson(body),
      }),
    })
    const answer = (await response.json()) as { data?: Record<string, unknown>; message?: string }
    if (answer.data === undefined) throw new Error(`the sandbox refused ${path}: ${answer.message}`)
    return answer.data
  }
  return {
    pay: async (orderId, amount) => text((await call(`/orders/${orderId}/pay`, { amount })).tx_hash),
    mine: async (network, blocks) => void (await call('/mine', { network, blocks })),
    reorg: async (network, depth) => void (await call('/reorg', { network, depth })),
    replace: async (txHash, to) => text((await call('/replace', { tx_hash: txHash, to })).tx_hash),
    setPrice: async (code, usd) => void (await call('/prices', { code, usd })),
    changePrice: async (code, percent) => void (await call('/prices', { code, change_percent: percent })),
    advanceClock: async (seconds) => void (await call('/clock', { advance_seconds: seconds })),
    freshAddress: async (network) => text((await call(`/address/${network}`)).address),
    balance: async (network, address, currency) => {
      const query = currency === undefined ? '' : `?currency=${currency}`
      return (await call(`/balance/${network}/${address}${query}`)).balance as number
    },
  }
}

/** Decimal text goes out as the number it spells, digit by digit. */
function toJson(body: object): string {
  return JSON.stringify(body, (key, value: unknown) =>
    ['amount', 'usd', 'change_percent'].includes(key) && typeof value === 'string' ? rawNumber(value) : value,
  )
}

function rawNumber(digits: string): unknown {
  return (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(digits)
}

function text(value: unknown): string {
  if (typeof value !== 'string') throw new Error('the sandbox answered something else than text')
  return value
}
