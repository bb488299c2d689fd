import type { OwnerPlace } from '../../accounts/owner_place.ts'

const noDatabase = () => Promise.reject(new Error('there are no accounts here'))

/** For servers whose owners nobody asks for. */
export const noAccounts: OwnerPlace = {
  db: { query: noDatabase, transaction: noDatabase, close: noDatabase },
  box: { seal: () => Buffer.alloc(0), open: () => '', hasKey: () => false },
  wallMs: () => 0,
  nowMs: () => 0,
  baseUrl: () => '',
  loopbackAllowed: false,
  changeLimits: { keys: 0, settings: 0 },
}
