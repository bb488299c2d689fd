// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// Refuses to be paid.
contract RejectingReceiver {
    receive() external payable {
        revert("no, thank you");
    }
}

/// Pays by calls inside a transaction, which carry no `to` and no `value` of the transaction itself.
contract Payer {
    event Transfer(address indexed from, address indexed to, uint256 value);

    receive() external payable {}

    /// An honest internal transfer of all that was sent along.
    function forward(address payable to) external payable {
        (bool isPaid,) = to.call{value: msg.value}("");
        require(isPaid, "forward failed");
    }

    /// Pays inside a call that then reverts; the revert is swallowed, the transaction succeeds.
    function payAndRevertInside(address payable to) external payable {
        try this.payThenRevert{value: msg.value}(to) {} catch {}
    }

    function payThenRevert(address payable to) external payable {
        (bool isPaid,) = to.call{value: msg.value}("");
        require(isPaid, "payment failed");
        revert("after the payment");
    }

    /// An event that looks like an ERC-20 transfer, from a contract that is no token.
    function emitFakeTransfer(address from, address to, uint256 value) external {
        emit Transfer(from, to, value);
    }

    /// Several honest internal transfers in one transaction.
    function payBatch(address payable[] calldata recipients, uint256[] calldata values) external payable {
        require(recipients.length == values.length, "lengths differ");
        for (uint256 i = 0; i < recipients.length; i++) {
            (bool isPaid,) = recipients[i].call{value: values[i]}("");
            require(isPaid, "batch failed");
        }
    }
}
