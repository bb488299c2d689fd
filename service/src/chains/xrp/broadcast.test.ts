import { expect, test } from 'vitest'
import { broadcast } from './broadcast.ts'
import { NoAnswer } from './rpc.ts'
import { accountAt, refusing, type Script, scriptedRpc } from './testing/scripted_rpc.ts'

const txHash = 'AB'.repeat(32)
const answering = (code: string, more: object = {}): Script => ({
  submit: () => ({ engine_result: code, ...more }),
})
const absent: Script = { tx: refusing('txnNotFound') }
/** What a node says of everything that it was handed within half an hour, or was asked for since. */
const tx = () => ({ hash: txHash, validated: false, Account: 'rUs', Sequence: 7, LastLedgerSequence: 20 })
const waiting: Script = { tx, account_info: accountAt(10, 7, 8) }
const overtaken: Script = { tx, account_info: accountAt(10, 8, 8) }
const late: Script = { tx, account_info: accountAt(20, 7, 7) }
const silent = () => {
  throw new NoAnswer('submit', 'cut')
}

test.each<[string, string, Script]>([
  ['accepted', 'it is in the open ledger', answering('tesSUCCESS')],
  ['accepted', 'only its fee will move', answering('tecUNFUNDED_PAYMENT')],
  ['accepted', 'it waits in the queue', answering('terQUEUED')],
  ['accepted', 'the node says otherwise that it waits', answering('terPRE_SEQ', { queued: true })],
  ['accepted', 'it is there already', { ...answering('tefALREADY'), ...waiting }],
  ['accepted', 'its own sequence is used by itself', { ...answering('tefPAST_SEQ'), ...waiting }],
  ['refused', 'its sequence is used by another', { ...answering('tefPAST_SEQ'), ...absent }],
  ['refused', 'its last ledger is over', { ...answering('tefMAX_LEDGER'), ...absent }],
  [
    'refused',
    'another has its sequence, and it is remembered',
    { ...answering('tefPAST_SEQ'), ...overtaken },
  ],
  ['refused', 'it is over, and remembered', { ...answering('tefMAX_LEDGER'), ...late }],
  ['accepted', 'its last ledger is over, and it is in one', { ...answering('tefMAX_LEDGER'), ...waiting }],
  ['refused', 'the fee is too low here', answering('telINSUF_FEE_P')],
  ['refused', 'it is malformed', answering('temBAD_AMOUNT')],
  ['refused', 'the signature is wrong', answering('tefBAD_AUTH')],
  ['unknown', 'an earlier sequence is missing', answering('terPRE_SEQ')],
  ['unknown', 'a word that nobody knows', answering('zzzNEW')],
  ['unknown', 'no answer', { submit: silent }],
  ['unknown', 'the node is too busy', { submit: refusing('tooBusy') }],
  ['unknown', 'it is used, and then nobody can say by whom', { ...answering('tefPAST_SEQ'), tx: silent }],
])('%s: %s', async (answer, _, script) => {
  expect(await broadcast(scriptedRpc(script), { txHash, bytes: '00' })).toBe(answer)
})
