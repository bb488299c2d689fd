// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";
import {TestToken} from "./TestToken.sol";

/// Like Tether on TRON's main network: moves what it is asked to, and answers false all the same.
contract TronTether is TestToken {
    constructor(address owner_) TestToken("Tether USD", "USDT", 6, owner_) {}

    function transfer(address to, uint256 value) public override returns (bool) {
        super.transfer(to, value);
        return false;
    }
}

/// Calls itself Tether USD and moves like it, and whoever asks is given any amount of it.
contract LookalikeToken is ERC20 {
    constructor() ERC20("Tether USD", "USDT") {}

    function decimals() public pure override returns (uint8) {
        return 6;
    }

    function mint(address to, uint256 value) external {
        _mint(to, value);
    }
}

/// Refuses every transfer.
contract RevertingToken {
    function transfer(address, uint256) external pure returns (bool) {
        revert("not today");
    }
}

/// Works on a transfer until nothing is left to work with.
contract BurningToken {
    uint256 public rounds;

    function transfer(address, uint256) external returns (bool) {
        while (true) rounds++;
        return true;
    }
}
